"""Example maps that need no download."""

from segtrust.demo.lesions import lesion_cases

__all__ = ["lesion_cases"]

"""Moved to `segtrust.io.checksums`."""

from segtrust.io.checksums import (  # moved
    ChecksumKind as Digest,
    checksum_of as digest_of,
    checksum_of_all as digest_of_all,
)

__all__ = ["Digest", "digest_of", "digest_of_all"]

"""All errors that segtrust raises on purpose, as one tree.

Each class also inherits the standard exception that it specialises, so ``except ValueError`` keeps working.

* SegtrustError
  x ProbabilityError        ValueError   - the values of a map are not probabilities
    · ProbabilityRangeError              - NaN, infinite or outside [0, 1]
    · ProbabilityTypeError  TypeError    - complex, object, text or signed integers
    · NotNormalisedError                 - the channels of a softmax do not add up to 1
  x MaskError               ValueError   - not a mask for this map
    · MaskShapeError                     - the shape differs from that of the map
    · NotBinaryError                     - values other than 0 and 1
  x EmptyArrayError         ValueError   - an array without pixels
  x GeometryError           ValueError   - the spacing does not fit the map
  x ParameterError          ValueError   - an argument outside its range or of the wrong type
    · GreyLevelsError                    - the bin width makes more grey levels than the backend supports
    · OtherSettingsError                 - a run cannot resume with other settings
  x CasesError              ValueError   - confidences and losses that cannot be ranked together
    · CaseLengthError                    - vectors of different lengths, or not vectors
    · CaseValueError                     - NaN, infinite, or a loss outside its range
    · TooFewCasesError                   - too few cases for the question
    · SeenCasesError                     - cases that the estimator or recalibration was fitted to
  x PolicyError             ValueError   - a policy that cannot be read, or is used with the wrong input
  x SavedStateError         ValueError   - other saved values that are incomplete, corrupt or of another kind
  x ReadError               ValueError   - a file that cannot be read as what it should be
    · UnknownFormatError                 - no reader recognises it
    · DamagedFileError                   - corrupt, truncated, or different from its own header
    · UnsafeFileError                    - reading it would run code or take too much memory
    · WrongContentError                  - read, but it holds something else than requested
  x PairingError            ValueError   - files of a dataset that cannot be paired
  x VerdictError            ValueError   - a verdict of the review desk that cannot be undone
    · UnknownVerdictError                - no verdict has this number
    · OthersVerdictError                 - it belongs to another reviewer
    · UndoneVerdictError                 - it was undone before, or is an undo itself
  x UnknownNameError        KeyError     - no estimator, structure or policy has this name
  x NotFittedError          RuntimeError - a score was requested before fit()
  x MissingExtraError       ImportError  - an optional package is not installed; names the extra
  x PluginError             ImportError  - a plug-in cannot be used; names its package
  x WorkerError             RuntimeError - a worker process ended before its work was done
"""

from __future__ import annotations

import re

__all__ = [
    "CaseLengthError",
    "CaseValueError",
    "CasesError",
    "DamagedFileError",
    "EmptyArrayError",
    "GeometryError",
    "GreyLevelsError",
    "MaskError",
    "MaskShapeError",
    "MissingExtraError",
    "NotBinaryError",
    "NotFittedError",
    "NotNormalisedError",
    "OtherSettingsError",
    "OthersVerdictError",
    "PairingError",
    "ParameterError",
    "PluginError",
    "PolicyError",
    "ProbabilityError",
    "ProbabilityRangeError",
    "ProbabilityTypeError",
    "ReadError",
    "SavedStateError",
    "SeenCasesError",
    "SegtrustError",
    "SegtrustWarning",
    "TooFewCasesError",
    "UndoneVerdictError",
    "UnknownFormatError",
    "UnknownNameError",
    "UnknownVerdictError",
    "UnsafeFileError",
    "VerdictError",
    "WorkerError",
    "WrongContentError",
]

_LONGEST = 1500
"""Longest message: a text that a file contains may be as long as the file."""
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def _one_line(text: str) -> str:
    """Return a message on one line, without control characters and without its middle if it is very long."""
    text = re.sub("[\n\r\t]", " ", text)
    text = _CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode(), text)
    if len(text) <= _LONGEST:
        return text
    return f"{text[: 2 * _LONGEST // 3]} … {text[-_LONGEST // 3 :]}"


class SegtrustError(Exception):
    """Base class of all errors that segtrust raises on purpose."""

    def __str__(self) -> str:
        """Return the message on one line, without its middle if it is very long."""
        return _one_line(super().__str__())


class SegtrustWarning(UserWarning):
    """Input that was accepted but looks wrong."""


class ProbabilityError(SegtrustError, ValueError):
    """The values of a map are not probabilities."""


class ProbabilityRangeError(ProbabilityError):
    """A value is NaN, infinite or outside [0, 1]."""


class ProbabilityTypeError(ProbabilityError, TypeError):
    """The type of the array cannot hold probabilities."""


class NotNormalisedError(ProbabilityError):
    """The channels of a softmax do not add up to 1."""


class MaskError(SegtrustError, ValueError):
    """A mask does not fit its map."""


class MaskShapeError(MaskError):
    """Mask and map differ in shape."""


class NotBinaryError(MaskError):
    """A mask holds values other than 0 and 1."""


class EmptyArrayError(SegtrustError, ValueError):
    """An array has no elements."""


class GeometryError(SegtrustError, ValueError):
    """The spacing and the shape of a case contradict each other."""


class ParameterError(SegtrustError, ValueError):
    """An argument is outside its range or of the wrong type."""


class GreyLevelsError(ParameterError):
    """A bin width makes more grey levels than the chosen backend supports."""


class OtherSettingsError(ParameterError):
    """A run cannot resume with other settings than it was started with."""


class CasesError(SegtrustError, ValueError):
    """Confidences and losses of a set of cases do not fit together."""


class CaseLengthError(CasesError):
    """Vectors over the same cases differ in length, or are not vectors."""


class CaseValueError(CasesError):
    """A confidence, loss or weight is NaN, infinite or outside its range."""


class TooFewCasesError(CasesError):
    """There are too few cases for the question."""


class SeenCasesError(CasesError):
    """Cases that an estimator or a recalibration was fitted to cannot be used to certify or evaluate it."""


class NotCertifiableError(CasesError):
    """The calibration cases certify no threshold for the target."""


class PolicyError(SegtrustError, ValueError):
    """A policy file is corrupt or of another kind, or a policy is used with the wrong input."""


class SavedStateError(SegtrustError, ValueError):
    """Saved values cannot be restored: they are incomplete, corrupt, or of another kind."""


class ReadError(SegtrustError, ValueError):
    """A file cannot be read as what it should be."""


class UnknownFormatError(ReadError):
    """No reader recognises the file."""


class DamagedFileError(ReadError):
    """A file is corrupt or truncated, or differs from its own header."""


class UnsafeFileError(ReadError):
    """Reading a file would run code, leave its folder, or take more memory than allowed."""


class WrongContentError(ReadError):
    """A file was read, but holds something else than requested."""


class PairingError(SegtrustError, ValueError):
    """Files of a dataset cannot be paired."""


class VerdictError(SegtrustError, ValueError):
    """A verdict of the review desk cannot be undone."""


class UnknownVerdictError(VerdictError):
    """No verdict has this number."""


class OthersVerdictError(VerdictError):
    """Only the reviewer who gave a verdict may undo it."""


class UndoneVerdictError(VerdictError):
    """A verdict can be undone once, and an undo never."""


class UnknownNameError(SegtrustError, KeyError):
    """No registry has this name."""

    def __str__(self) -> str:
        """Return the message as written; ``KeyError`` would put it in quotes."""
        return _one_line(str(self.args[0])) if self.args else ""


class WorkerError(SegtrustError, RuntimeError):
    """A worker process ended before its work was done."""


class NotFittedError(SegtrustError, RuntimeError):
    """A score was requested from an estimator before it was fitted."""


class MissingExtraError(SegtrustError, ImportError):
    """An optional package is needed and not installed."""


class PluginError(SegtrustError, ImportError):
    """A plug-in of another package cannot be loaded, or is not what it should be."""

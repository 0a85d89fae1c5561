"""Everything that can go wrong, as one tree.

Each class also inherits the standard exception it specialises, so ``except ValueError`` keeps working.

* SegtrustError
  x ProbabilityError        ValueError  - a map whose numbers are not probabilities
    · ProbabilityRangeError             - NaN, infinite or outside [0, 1]
    · ProbabilityTypeError  TypeError   - complex, object, text, signed integers
    · NotNormalisedError                - channels of a softmax that do not add up to 1
  x MaskError               ValueError  - a mask that is not a mask
    · MaskShapeError                    - of another shape than its map
    · NotBinaryError                    - values other than 0 and 1
  x EmptyArrayError         ValueError  - no pixel at all
  x GeometryError           ValueError  - spacing that does not fit the map
  x ParameterError          ValueError  - a threshold, side or option outside its range, or no array
                                          where one is expected
    · GreyLevelsError                   - a bin width that makes more grey levels than a backend knows
    · OtherSettingsError                - a run that was begun with others than it is to go on with
  x CasesError              ValueError  - confidences and losses that cannot be ranked together
    · CaseLengthError                   - vectors of different lengths, or no vectors
    · CaseValueError                    - NaN, infinite, or a loss outside its range
    · TooFewCasesError                  - fewer cases than the question needs
    · SeenCasesError                    - cases that something has learned from already
  x PolicyError             ValueError  - a policy that cannot be read, or does not fit what it is used with
  x SavedStateError         ValueError  - other saved values that are incomplete, damaged or of another kind
  x ReadError               ValueError  - a file that cannot be read as what it is taken for
    · UnknownFormatError                - none of the readers knows it
    · DamagedFileError                  - truncated, garbled, or not what its own header says
    · UnsafeFileError                   - would run code when read, or take too much memory
    · WrongContentError                 - read, but holds something else than was asked for
  x PairingError            ValueError  - files of a data set that do not find together
  x VerdictError            ValueError  - a verdict of the review desk that cannot be taken back
    · UnknownVerdictError               - there is none of this number
    · OthersVerdictError                - somebody else gave it
    · UndoneVerdictError                - it has been taken back already, or is an undo itself
  x UnknownNameError        KeyError    - an estimator, structure or policy that does not exist
  x NotFittedError          RuntimeError - asked for a score before fit()
  x MissingExtraError       ImportError - an optional package that is not installed; names the extra
  x PluginError             ImportError - what another package offers and cannot be used; names the package
  x WorkerError             RuntimeError - a process that ended before its work was done
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
"""Characters of a message: what a file says of itself may be as long as the file."""
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def _one_line(text: str) -> str:
    """Give a message as one line of a terminal, a log or a table, whatever it quotes of a file."""
    plain = _CONTROL.sub(_spelled, text)
    if len(plain) <= _LONGEST:
        return plain
    return f"{plain[: 2 * _LONGEST // 3]} … {plain[-_LONGEST // 3 :]}"


def _spelled(found: re.Match[str]) -> str:
    return " " if found[0] in "\n\r\t" else found[0].encode("unicode_escape").decode()


class SegtrustError(Exception):
    """Root of all errors that segtrust raises on purpose."""

    def __str__(self) -> str:
        """Give the message on one line, without its middle where it is very long."""
        return _one_line(super().__str__())


class ProbabilityError(SegtrustError, ValueError):
    """The numbers of a map are not probabilities."""


class ProbabilityRangeError(ProbabilityError):
    """A value is NaN, infinite or outside [0, 1]."""


class ProbabilityTypeError(ProbabilityError, TypeError):
    """The array's type cannot hold probabilities."""


class NotNormalisedError(ProbabilityError):
    """The channels of a softmax do not add up to 1."""


class MaskError(SegtrustError, ValueError):
    """A mask does not fit its map."""


class MaskShapeError(MaskError):
    """Mask and map differ in shape."""


class NotBinaryError(MaskError):
    """A mask holds values other than 0 and 1."""


class EmptyArrayError(SegtrustError, ValueError):
    """An array without a single element."""


class GeometryError(SegtrustError, ValueError):
    """Spacing or shape of a case contradict each other."""


class ParameterError(SegtrustError, ValueError):
    """An option outside the range in which it means something, or something that is no array of pixels."""


class GreyLevelsError(ParameterError):
    """A bin width makes more grey levels than the chosen backend can count."""


class OtherSettingsError(ParameterError):
    """A run cannot go on with other settings than it was begun with."""


class CasesError(SegtrustError, ValueError):
    """Confidences and losses of a set of cases do not fit together."""


class CaseLengthError(CasesError):
    """Vectors over the same cases differ in length, or are no vectors."""


class CaseValueError(CasesError):
    """A confidence, loss or weight that is NaN, infinite or outside its range."""


class TooFewCasesError(CasesError):
    """Fewer cases than the question needs."""


class SeenCasesError(CasesError):
    """Cases that an estimator or a recalibration has learned from cannot vouch for it."""


class PolicyError(SegtrustError, ValueError):
    """A policy file that is damaged or of another kind, or a policy used with what it was not made for."""


class SavedStateError(SegtrustError, ValueError):
    """What was saved cannot be made again: incomplete, damaged, or of another kind."""


class ReadError(SegtrustError, ValueError):
    """A file cannot be read as what it is taken for."""


class UnknownFormatError(ReadError):
    """No reader knows the file."""


class DamagedFileError(ReadError):
    """A file is truncated, garbled, or not what its own header says."""


class UnsafeFileError(ReadError):
    """To read a file would run code, leave its folder, or take more memory than allowed."""


class WrongContentError(ReadError):
    """A file was read, but holds something else than was asked for."""


class PairingError(SegtrustError, ValueError):
    """Files of a data set do not find together."""


class VerdictError(SegtrustError, ValueError):
    """A verdict of the review desk cannot be taken back."""


class UnknownVerdictError(VerdictError):
    """There is no verdict of this number."""


class OthersVerdictError(VerdictError):
    """Only who gave a verdict may take it back."""


class UndoneVerdictError(VerdictError):
    """A verdict can be taken back once, and an undo never."""


class UnknownNameError(SegtrustError, KeyError):
    """A name that no registry knows."""

    def __str__(self) -> str:
        """Return the message as written; ``KeyError`` would put it in quotes."""
        return _one_line(str(self.args[0])) if self.args else ""


class WorkerError(SegtrustError, RuntimeError):
    """A process ended before its work was done."""


class NotFittedError(SegtrustError, RuntimeError):
    """An estimator that learns was asked for a score before it learned."""


class MissingExtraError(SegtrustError, ImportError):
    """A package that one of the extras installs is needed and absent."""


class PluginError(SegtrustError, ImportError):
    """Another package offers something that cannot be loaded, or is not what it should be."""

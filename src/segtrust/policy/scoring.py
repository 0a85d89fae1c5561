"""How confidences are computed, as a policy records it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, is_dataclass, replace
from typing import TYPE_CHECKING, Any

from segtrust._arguments import check_threshold
from segtrust._files import naming_errors, plain_values
from segtrust._types import DecodingName, EmptyName
from segtrust.errors import ParameterError, PluginError, PolicyError, UnknownNameError
from segtrust.selective import used_ids_as_text

if TYPE_CHECKING:
    from segtrust.calibration import Scaling
    from segtrust.confidence import ConfidenceEstimator
    from segtrust.maps import EmptyPolicy, Prediction

_DECODINGS = ("threshold", "dice-optimal")


@dataclass(frozen=True)
class Scoring:
    """How confidences are computed: for the calibration cases of a policy, and for every case it decides on.

    Attributes
    ----------
    estimator, parameters
        Name of the estimator, and the parameters it was fitted or set to, as plain values.
    empty
        The empty-mask policy, ``"paper"`` or ``"agree"``; that of the estimator if its parameters contain
        one.
    recalibration
        The recalibration of the maps as plain values; ``None`` if maps are scored as they are. The ids that
        it has learned from (``used_ids``) are compared with the calibration cases when a policy is made,
        and then left out: they do not change a confidence, and a policy contains no readable id.
    predictor
        Name of the model that made the maps: a fold and an ensemble of folds are different models.
    decode
        How masks were made if none was delivered: ``"threshold"`` or ``"dice-optimal"``.
    threshold
        Decision threshold of these masks, in [0, 1]: a mask is ``p >= threshold``.
    seen_ids
        Ids of the cases that the estimator and the recalibration have learned from, collected from the
        ``used_ids`` of both; a policy does not keep them.

    Examples
    --------
    >>> Scoring("tla", {"tau": 0.3}).estimator
    'tla'
    """

    estimator: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    empty: EmptyPolicy | EmptyName = "paper"
    recalibration: Mapping[str, Any] | None = None
    predictor: str = ""
    decode: DecodingName = "threshold"
    threshold: float = 0.5
    seen_ids: frozenset[str] = field(default=frozenset(), repr=False, compare=False)

    @classmethod
    def of(cls, estimator: Any, **about: Any) -> Scoring:
        """Describe scoring by an estimator.

        Parameters
        ----------
        estimator
            The estimator, such as ``get_estimator("sdc")``.
        **about
            Values of the other attributes.

        Examples
        --------
        >>> from segtrust.confidence import PatchLevel
        >>> Scoring.of(PatchLevel(size=20), predictor="fold 0").parameters
        {'size': 20}
        """
        from segtrust.confidence import ConfidenceEstimator, get_estimator

        if not isinstance(estimator, ConfidenceEstimator):
            raise ParameterError(
                f"estimator: expected an estimator, such as get_estimator('sdc'), got {estimator!r}."
            )
        registered = None
        with suppress(UnknownNameError):
            registered = get_estimator(estimator.name)
        if type(estimator) is not type(registered):
            raise ParameterError(
                f"estimator: {estimator.name!r} cannot be stored in a policy, because no installed package "
                f"offers {type(estimator).__name__} under this name. Register it as an entry point "
                "'segtrust.estimators', see the page on writing a plug-in."
            )
        if not is_dataclass(estimator) and vars(estimator) != vars(registered):
            raise ParameterError(
                f"estimator: {type(estimator).__name__} is not a dataclass, so a policy cannot store its "
                "settings. Make it one, with the settings as fields."
            )
        used_ids = getattr(estimator, "used_ids", ())
        return cls(estimator.name, {**estimator.parameters, "used_ids": used_ids}, **about)

    def __post_init__(self) -> None:
        """Check the values and keep copies of them."""
        if not isinstance(self.estimator, str) or not self.estimator:
            raise ParameterError(f"estimator: expected a name, got {self.estimator!r}.")
        if not isinstance(self.predictor, str):
            raise ParameterError(f"predictor: expected a name, or nothing, got {self.predictor!r}.")
        if self.decode not in _DECODINGS:
            raise ParameterError(f"decode: expected {' or '.join(_DECODINGS)}, got {self.decode!r}.")
        object.__setattr__(self, "threshold", check_threshold(self.threshold, "threshold"))
        parameters, fitted_on = _without_ids(self.parameters, "parameters")
        recalibration, recalibrated_on = _without_ids(self.recalibration or {}, "recalibration")
        seen_ids = used_ids_as_text(self.seen_ids) | fitted_on | recalibrated_on
        empty_of_estimator = parameters.pop("empty", None)
        object.__setattr__(self, "seen_ids", seen_ids)
        object.__setattr__(self, "empty", _empty_policy(self.empty, empty_of_estimator))
        object.__setattr__(self, "parameters", parameters)
        if self.recalibration is not None:
            object.__setattr__(self, "recalibration", recalibration)

    def make_estimator(self) -> ConfidenceEstimator:
        """Return the estimator with its parameters and the empty-mask policy set.

        Examples
        --------
        >>> Scoring("pla", {"size": 20}).make_estimator()
        PatchLevel(size=20)
        """
        from segtrust.confidence import get_estimator, has_empty_setting

        kind = type(get_estimator(self.estimator))
        empty = {"empty": self.empty} if has_empty_setting(kind) else {}
        with naming_errors(f"policy: {self.estimator}", error=PolicyError):
            return kind(**self.parameters, **empty)

    def make_scaling(self) -> Scaling | None:
        """Return the recalibration of the maps; ``None`` if maps are scored as they are."""
        from segtrust.calibration import Scaling

        return None if self.recalibration is None else Scaling.from_dict(self.recalibration)

    def check(self) -> None:
        """Raise if maps cannot be scored like this; an estimator that is not installed here cannot be tried.

        Examples
        --------
        >>> Scoring("pla", {"size": -1}).check()
        Traceback (most recent call last):
        ...
        segtrust.errors.PolicyError: policy: pla: size: expected a whole number of at least 1, got -1. ...
        """
        with suppress(UnknownNameError, PluginError):
            self.make_estimator()
        self.make_scaling()

    def prepare(self, prediction: Prediction, where: Any = None) -> Prediction:
        """Return a prediction as it is scored: recalibrated, and with the mask that is decided on.

        Parameters
        ----------
        prediction
            A probability map, and its mask if one was delivered.
        where
            Which pixels count, as `segtrust.kernels.check_where` returns it; all by default.
        """
        from segtrust.maps import EmptyPolicy

        seeks_best = self.decode == "dice-optimal" and prediction.mask is None
        decode_empty = EmptyPolicy(self.empty) if seeks_best else None
        return prepare_prediction(prediction, self.make_scaling(), decode_empty, where)

    def difference(self, other: Scoring) -> tuple[str, Any, Any] | None:
        """Return the first attribute in which the confidences would differ, with both values; else ``None``.

        The model's name is not compared. Parameters of an estimator that are not given have their default
        values, and the number of cases that a recalibration was learned from makes no difference.

        Examples
        --------
        >>> Scoring("pla").difference(Scoring("pla", {"size": 10})) is None
        True
        >>> Scoring("pla").difference(Scoring("pla", {"size": 20}))
        ('parameters', {'size': 10}, {'size': 20})
        """
        ours, theirs = _confidence_settings(self), _confidence_settings(other)
        differing = (name for name in ours if ours[name] != theirs[name])
        return next(((name, ours[name], theirs[name]) for name in differing), None)


def prepare_prediction(
    prediction: Prediction, scaling: Scaling | None, decode_empty: EmptyPolicy | None, where: Any = None
) -> Prediction:
    """Return a prediction as it is scored: recalibrated, and with its Dice-optimal mask if requested.

    The Dice-optimal mask is that of the recalibrated map. A mask that was delivered, or that is the map at
    its threshold, is that of the original map, because it is the one in use.

    Parameters
    ----------
    prediction
        A probability map, and its mask if one was delivered.
    scaling
        Recalibration of the map, or ``None``.
    decode_empty
        The empty-mask policy of the Dice-optimal mask; ``None`` if that mask is not requested.
    where
        Which pixels count, as `segtrust.kernels.check_where` returns it; all by default. The others are
        certain background when a map is recalibrated or decoded.
    """
    from segtrust.confidence import decoded
    from segtrust.kernels import check_where, fill_unselected

    def filled(prediction: Prediction) -> Prediction:
        if where is None:
            return prediction
        p = prediction.probabilities  # where may still be in chunks when the recalibrated map is in memory
        return replace(prediction, probabilities=fill_unselected(p, check_where(where, p)))

    if scaling is not None:
        prediction = scaling.calibrate(filled(prediction), keep_mask=decode_empty is None)
    return prediction if decode_empty is None else decoded(filled(prediction), decode_empty)


def _confidence_settings(scoring: Scoring) -> dict[str, Any]:
    """Return everything that a confidence depends on."""
    from segtrust.confidence import get_estimator

    try:
        defaults = dict(get_estimator(scoring.estimator).parameters)
    except (UnknownNameError, PluginError):  # an estimator that is not installed here
        defaults = {}
    for name in ("empty", "used_ids"):
        defaults.pop(name, None)
    recalibration = scoring.recalibration
    return {
        "estimator": scoring.estimator,
        "parameters": {**defaults, **scoring.parameters},
        "empty": scoring.empty,
        "decode": scoring.decode,
        "threshold": scoring.threshold,
        "recalibration": recalibration and {k: v for k, v in recalibration.items() if k != "n_cases"},
    }


def _empty_policy(stated: Any, of_estimator: Any) -> str:
    """Return the empty-mask policy; if the estimator has one of its own, that one."""
    empty = stated if of_estimator is None else of_estimator
    if empty not in ("paper", "agree"):
        raise ParameterError(f"empty: expected 'paper' or 'agree', got {empty!r}.")
    if stated not in ("paper", empty):
        raise ParameterError(
            f"empty: the estimator has {str(empty)!r}, got {str(stated)!r}. Set it on the estimator only."
        )
    return str(empty)


def _without_ids(values: Any, name: str) -> tuple[dict[str, Any], frozenset[str]]:
    """Return a copy as plain values without the ids that were learned from, and these ids."""
    if not isinstance(values, Mapping):
        raise ParameterError(f"{name}: expected a mapping of plain values, got {values!r}.")
    used_ids = used_ids_as_text(values.get("used_ids", ()))
    copy: dict[str, Any] = plain_values(
        {key: value for key, value in values.items() if key != "used_ids"}, name
    )
    return copy, used_ids

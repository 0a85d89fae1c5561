# ruff: noqa: F401, D100, I001, RUF100
from segtrust.selective.drift import ExchangeabilityMartingale as ExchangeabilityMartingale
from segtrust.selective.drift import MartingaleState as MartingaleState

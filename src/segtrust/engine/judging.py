"""Moved to `segtrust.engine.losses`."""

from segtrust.engine.losses import (
    DICE,
    LOSS,
    LossSource as Judge,
    check_no_text as refuse_text,
    check_unique_cases as refuse_doubles,
    drop_rows_without_loss as with_losses,
    loss_column,
    loss_name,
    loss_of_row,
    loss_of_target,
    name_without_file,
    no_loss_message as no_loss,
)

__all__ = ["DICE", "LOSS", "Judge", "loss_column", "loss_name", "loss_of_row", "loss_of_target", "name_without_file", "no_loss", "refuse_doubles", "refuse_text", "with_losses"]

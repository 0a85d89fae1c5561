# ruff: noqa
# mypy: implicit-reexport
from segtrust._files import sync_files as bring_to_disk
from segtrust._files import check_format as check_format
from segtrust._files import check_keys as check_keys
from segtrust._files import checksum as checksum
from segtrust._files import format_json as json_text
from segtrust._files import make_writable_folder as make_writable
from segtrust._files import plain_values as plain
from segtrust._files import read_json as read_json
from segtrust._files import naming_errors as reading
from segtrust._files import rebuild as rebuild
from segtrust._files import remove_stale_drafts as remove_old_drafts
from segtrust._files import remove_stale_drafts_of as remove_old_drafts_of
from segtrust._files import atomic_write as replacing
from segtrust._files import atomic_write_all as replacing_all
from segtrust._files import write_json as write_json

"""The paper's wing: its experiments, tasks and networks, with their tables, figures and commands.

Nothing else in segtrust needs it: only the command loader, ``segtrust plugins`` and the old paths of release
0.1 import it.
"""

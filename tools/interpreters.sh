# Which interpreters are at hand; to be read by other scripts.

SUPPORTED="3.11 3.12 3.13"

interpreter() {  # path of an interpreter of this version: on the PATH, or kept by pyenv
    for candidate in "python$1" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$1".*/bin/python; do
        if "$candidate" -c 'import ensurepip, venv' 2>/dev/null; then echo "$candidate"; return; fi
    done
}

at_hand() {  # the supported versions that are here, oldest first
    for version in $SUPPORTED; do
        if [ -n "$(interpreter "$version")" ]; then echo "$version"; fi
    done
}

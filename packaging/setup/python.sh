#!/bin/sh
# Prints the Python to set up with: the one asked for, else the first that is new enough.
#   python.sh [PYTHON]
good='import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 15))'
for python in ${1:-python3 python3.13 python3.12 python3.11 python3.14}; do
    if "$python" -c "$good" 2>/dev/null; then
        command -v "$python"
        exit 0
    fi
done
echo "Inglenook needs Python 3.11 to 3.14${1:+, and $1 is not that}. Install one, or name it: make PYTHON=/path/to/python3" >&2
exit 1

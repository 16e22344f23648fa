# SPDX-License-Identifier: MIT
"""Fixtures that all of pytest's tests share."""

from __future__ import annotations

import pytest
import sampling


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.write_line(sampling.about())

"""Logging in klog's two shapes, on top of the standard library's: any module's logger ends up here."""

from kubesched.daemon.log.log import Log
from kubesched.daemon.log.setup import Logging, start_logging

__all__ = ["Log", "Logging", "start_logging"]

# A function that was not called.
_: x: { hosts = x; }

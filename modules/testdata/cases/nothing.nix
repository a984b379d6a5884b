# The module alone changes nothing.
{ modules, ... }: { imports = [ modules.default ]; }

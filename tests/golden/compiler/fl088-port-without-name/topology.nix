# The wiki has one port.
{ base, merge, ... }:
merge base { roles.reader.services = [ "wiki:http" ]; }

# A file for each host. All five hosts of the example run on one machine, under one account.
# Therefore each has an address of its own, on which all its programs listen, a range of its own for
# local listeners, and a line that lets the account act as the host. On separate machines, only the
# address and the key are written.
facts:
let
  on =
    number: host: name:
    host
    // {
      address = "127.77.0.${toString number}";
      bind = "127.77.0.${toString number}";
      loopback = "127.${toString (100 + number)}.0.0/16";
      sshHostKey = facts.sshHostKeys.${name};
      callers = {
        node = me;
      }
      // host.callers or { };
    };
  me = [ facts.account ];

  files = builtins.filter (file: file != "default.nix") (builtins.attrNames (builtins.readDir ./.));
  host =
    file:
    let
      name = builtins.head (builtins.match "(.*)\\.nix" file);
    in
    {
      inherit name;
      value = import (./. + "/${file}") { inherit on me; } name;
    };
in
builtins.listToAttrs (map host files)

# A file for each host. All five of the example run on one machine, under one
# account: each has an address of its own, which is all that it listens on, its local
# listeners in a range of their own, and says that the account acts as it. On machines
# of their own none of this is written, only the address and the key.
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

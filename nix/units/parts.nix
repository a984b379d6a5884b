# What the units are made of.
let
  inherit (builtins) any attrNames concatStringsSep elemAt fromJSON isBool map match replaceStrings toJSON;
in
rec {
  confined = import ./confined.nix;

  # Programs that wait for whatever they need, and are started again whatever ended them.
  service = confined // {
    NotifyAccess = "main";
    Restart = "on-failure";
    RestartSec = 5;
    Type = "notify";
  };

  # Those that nothing has to wait for.
  simple = service // { NotifyAccess = "none"; Type = "exec"; };

  # Nothing but Unix sockets.
  offline = {
    IPAddressDeny = "any";
    PrivateNetwork = true;
    RestrictAddressFamilies = "AF_UNIX";
  };

  state = "/var/lib/florete";
  current = need: "${state}/needs/${need}/current";

  # A command line: the program, and a flag for each attribute.
  command = program: set: concatStringsSep "" ([ program ] ++ map (n: " --${n}=${word set.${n}}") (attrNames set));

  # One argument of it, as systemd reads it.
  word = v: toJSON (replaceStrings [ "%" "$" ] [ "%%" "$$" ] (text v));
  text = v: if isBool v then (if v then "true" else "false") else toString v;

  # Of "host:port" addresses, does one need a privilege to listen?
  privileged = any (address: fromJSON (elemAt (match ".*:([0-9]+)" address) 0) < 1024);
  bind = needed: if needed then "CAP_NET_BIND_SERVICE" else "";
}

# What the units of a host are made of, as a member of its cluster: a second instance
# has names, directories and accounts of its own.
# String -> AttrSet
instance:
let
  inherit (builtins)
    any
    attrNames
    concatStringsSep
    elemAt
    fromJSON
    isBool
    match
    replaceStrings
    toJSON
    ;
  constants = (import ../lib/constants.nix).hostdir;
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
  simple = service // {
    NotifyAccess = "none";
    Type = "exec";
  };

  # What sockets start: it starts however often it ended, and stops with them, since a
  # socket does not start while its service runs.
  ofSocket = names: {
    PartOf = map unit names;
    StartLimitIntervalSec = 0;
  };

  # Nothing but Unix sockets.
  offline = {
    IPAddressDeny = "any";
    PrivateNetwork = true;
    RestrictAddressFamilies = "AF_UNIX";
  };

  prefix = constants.prefix + (if instance == "" then "" else "_${instance}");
  unit = name: "${prefix}-${name}";
  state = "/var/lib/${prefix}";
  run = "/run/${prefix}";
  etc = "/etc/${prefix}";
  current = need: "${state}/needs/${need}/current";

  # A command line of ours: the program, and a flag for each attribute.
  # command :: String -> AttrSet -> String
  command =
    program: set:
    let
      flags = set // (if instance == "" then { } else { inherit instance; });
    in
    concatStringsSep "" ([ program ] ++ map (n: " --${n}=${word flags.${n}}") (attrNames flags));

  # One argument of it, as systemd reads it.
  # word :: Any -> String
  word = v: toJSON (replaceStrings [ "%" "$" ] [ "%%" "$$" ] (text v));
  text = v: if isBool v then (if v then "true" else "false") else toString v;

  # Of addresses to listen on, host:port or :port, does one need a privilege to listen?
  # privileged :: [String] -> Bool
  privileged = any (address: fromJSON (elemAt (match ".*:([0-9]+)" address) 0) < 1024);
  bind = needed: if needed then "CAP_NET_BIND_SERVICE" else "";
}

# Shared parts of the units of a host in one of its clusters. A second instance has its own names,
# directories and accounts.
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

  # Programs that wait for everything they need, and restart after every failure.
  service = confined // {
    NotifyAccess = "main";
    Restart = "on-failure";
    RestartSec = 5;
    Type = "notify";
  };

  # Programs that no unit waits for.
  simple = service // {
    NotifyAccess = "none";
    Type = "exec";
  };

  # Services that a socket starts. They start regardless of how often they ended, and stop with the
  # socket, because a socket does not start while its service runs.
  ofSocket = names: {
    PartOf = map unit names;
    StartLimitIntervalSec = 0;
  };

  # Units that only use Unix sockets.
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

  # A command line with a flag for each attribute.
  # command :: String -> AttrSet -> String
  command =
    program: set:
    let
      flags = set // (if instance == "" then { } else { inherit instance; });
    in
    concatStringsSep "" ([ program ] ++ map (n: " --${n}=${word flags.${n}}") (attrNames flags));

  # One argument of a command line, quoted for systemd.
  # word :: Any -> String
  word = v: toJSON (replaceStrings [ "%" "$" ] [ "%%" "$$" ] (text v));
  text = v: if isBool v then (if v then "true" else "false") else toString v;

  # Reports whether listening on one of some addresses, host:port or :port, needs a privilege.
  # privileged :: [String] -> Bool
  privileged = any (address: fromJSON (elemAt (match ".*:([0-9]+)" address) 0) < 1024);
  bind = needed: if needed then "CAP_NET_BIND_SERVICE" else "";
}

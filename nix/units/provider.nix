# The process of each kind of need on a provider host, where the operator has written its
# settings. None shares an account, a state or memory with another.
common:
let
  inherit (builtins)
    attrNames
    concatMap
    filter
    listToAttrs
    toJSON
    ;
  inherit (common)
    bind
    command
    etc
    privileged
    service
    state
    unit
    ;
  names = import ../lib/names.nix;
  inherit (import ../lib) optionalAttrs;

  # What each sees of the settings: an edit of one kind's restarts that one alone.
  own = kind: settings: {
    inherit kind;
    inherit (settings) activation state;
    own = settings.${kind} or { };
  };

  # Kinds whose processes answer callers, or operators, themselves, and those that do through kind config.
  operated = kind: (import ../kinds).${kind}.operated or false;
  called = kind: kind == "config" || operated kind || announced kind;
  announced = kind: (import ../kinds).${kind}.announced or false;

  # Kinds that send secrets to other servers of the host look whose a socket is.
  looks = settings: settings ? servers || settings ? forges || settings ? url;
  relayed = policy: filter operated (attrNames policy.provider);
in
{
  # Accounts of those that others have something for: a certificate, files that an operator
  # keeps. The process that issues certificates has one that systemd makes.
  accounts =
    policy:
    listToAttrs (
      concatMap (
        kind:
        if kind == "cert" then
          [ ]
        else
          [
            {
              name = unit "provider-${kind}";
              value = {
                description = "Florete's ${kind} provider";
                home = "${state}-provider/${kind}";
              };
            }
          ]
      ) (attrNames policy.provider)
    );

  #   credentials   kind → name → file that root can read
  units =
    {
      policy,
      bin,
      settings,
      credentials,
    }:
    {
      # Starts and stops them together.
      ${unit "provider.target"} = {
        Unit.Description = "Answer what the hosts of the cluster need";
        Install.WantedBy = [ "multi-user.target" ];
      };
    }
    // listToAttrs (
      map (
        kind:
        let
          capability = bind (privileged policy.provider.${kind}.listen);
          # What it calls a shared store with.
          store =
            if policy ? store then
              listToAttrs (
                map
                  (n: {
                    name = "store-${n}";
                    value = "${etc}/store/${n}";
                  })
                  [
                    "ca.crt"
                    "client.crt"
                    "client.key"
                  ]
              )
            else
              { };
          loaded = store // credentials.${kind} or { };
        in
        {
          name = unit "provider-${kind}.service";
          value = {
            Unit = {
              Description = "Answer what the hosts of the cluster need of kind ${kind}";
              # Not by the policy of before a deployment, which may listen elsewhere.
              After = [
                "network.target"
                (unit "activate.service")
              ];
              PartOf = [ (unit "provider.target") ];
              ConditionPathExists = "${etc}/provider.hujson";
              StartLimitIntervalSec = 0;
            }
            // (if settings == null then { } else { X-Settings = names.sri (toJSON (own kind settings)); });
            Service =
              service
              // {
                ExecStart = command "${bin}/flor-provider run ${kind}" { settings = "${etc}/provider.hujson"; };
                User = unit "provider-${kind}";
                DynamicUser = kind == "cert";
                AmbientCapabilities = capability;
                CapabilityBoundingSet = capability;
                LimitNOFILE = 65536;
                MemoryMax = "1G";
                # Whoever connects to the socket of operators, or listens where the process connects
                # to, is an account of the host.
                PrivateUsers = capability == "" && !called kind && !looks policy.kinds.${kind} or { };
                RestrictAddressFamilies = "AF_INET AF_INET6 AF_NETLINK AF_UNIX"; # accounts of sockets
                StateDirectory = "${unit "provider"}/${kind}";
                StateDirectoryMode = "0700";
                UMask = "0077";
              }
              # The sealing key of a shared store opens with the SSH host key, which no process of
              # a kind reads.
              // optionalAttrs (policy ? store) {
                ExecStartPre = "+${
                  command "${bin}/flor-provider unseal ${kind}" { settings = "${etc}/provider.hujson"; }
                }";
              }
              # Where operators call, through the forwarder, which is in the group, and from there
              # the processes of other kinds. That of config leaves them the revocation list there, and
              # its sockets are the group's alone.
              // optionalAttrs (called kind) {
                RuntimeDirectory = unit "provider-${kind}";
                RuntimeDirectoryMode = if kind == "config" then "0711" else "0710";
              }
              // optionalAttrs (kind == "config" && relayed policy != [ ]) {
                SupplementaryGroups = map (kind: unit "provider-${kind}") (relayed policy);
              }
              // (
                if loaded == { } then
                  { }
                else
                  {
                    LoadCredential = map (n: "${n}:${loaded.${n}}") (attrNames loaded);
                  }
              );
            Install.WantedBy = [ (unit "provider.target") ];
          };
        }
      ) (attrNames policy.provider)
    );
}

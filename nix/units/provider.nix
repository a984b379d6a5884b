# The process of each kind of need on a provider host. No two of them share an account, a state
# directory or memory.
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

  # The settings that a process reads. An edit of one kind restarts only its process.
  own = kind: settings: {
    inherit kind;
    inherit (settings) activation state;
    own = settings.${kind} or { };
  };

  # Kinds whose processes answer callers directly, or operators directly or through kind config.
  operated = kind: (import ../kinds).${kind}.operated or false;
  called = kind: kind == "config" || operated kind || announced kind;
  announced = kind: (import ../kinds).${kind}.announced or false;

  # Kinds that send secrets to other servers of the host check which account owns the socket.
  looks = settings: settings ? servers || settings ? forges || settings ? url;
  relayed = policy: filter operated (attrNames policy.provider);
in
{
  # Kinds for which others keep files, such as a certificate or files of an operator, have a
  # permanent account. Kind cert has one that systemd creates.
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
      # Starts and stops all kinds together.
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
          # The certificate for the shared store.
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
              # The policy before a deployment may have another port.
              After = [
                "network.target"
                (unit "activate.service")
              ];
              PartOf = [ (unit "provider.target") ];
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
                # The process must see the accounts of the host to check who connects to its socket,
                # or who listens where it connects to.
                PrivateUsers = capability == "" && !called kind && !looks policy.kinds.${kind} or { };
                RestrictAddressFamilies = "AF_INET AF_INET6 AF_NETLINK AF_UNIX"; # AF_NETLINK to find the account of a socket
                StateDirectory = "${unit "provider"}/${kind}";
                StateDirectoryMode = "0700";
                UMask = "0077";
              }
              # The sealing key of a shared store is decrypted with the SSH host key, which the
              # process itself cannot read.
              // optionalAttrs (policy ? store) {
                ExecStartPre = "+${
                  command "${bin}/flor-provider unseal ${kind}" { settings = "${etc}/provider.hujson"; }
                }";
              }
              # The sockets of operators, for the forwarder, which is in the group, and for
              # processes of other kinds. Kind config also puts the revocation list for other kinds
              # there; only its group may use its sockets.
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

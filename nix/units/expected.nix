# The units of a host that should run: name without prefix → whether the unit must be installed. A
# host works without the other units: its documents came over the network, which installs no units,
# or an option of the NixOS module excludes them. The arguments are those in default.nix.
{
  activate,
  agent,
  credential,
  delivering,
  guard,
  host,
  hostsFile,
  ingress,
  parts,
  recorder,
  rollback,
  store,
  unit,
  workload,
}:
let
  inherit (builtins)
    attrNames
    elem
    filter
    listToAttrs
    mapAttrs
    stringLength
    substring
    ;

  # The units that start at boot: name without prefix → whether the unit must be installed.
  started =
    units:
    listToAttrs (
      map (
        full:
        let
          name = substring (stringLength (unit "")) (-1) full;
        in
        {
          inherit name;
          value = elem name required;
        }
      ) (filter (name: units.${name} ? Install) (attrNames units))
    );
  required = [
    "activate.service"
    "agent.service"
    "refresh.timer"
    "store.service"
    "workload.socket"
  ];

  # The same for the optional units, which are alike on all hosts that have them.
  starting =
    let
      bin = "";
      settings = { };
      manifest = null;
      policy = null;
      documents = null;
    in
    mapAttrs (_: started) {
      always =
        activate {
          inherit
            manifest
            documents
            bin
            settings
            ;
        }
        // agent {
          inherit
            manifest
            policy
            bin
            settings
            ;
        }
        // hostsFile { inherit bin; }
        // guard { inherit bin; }
        // rollback.units { inherit bin; };
      certificates = store.certificates { inherit bin; };
      store = store.units {
        member = null;
        etcd = "";
      };
      credentials = credential.units { inherit bin; };
      ingress = ingress { inherit bin settings; };
      recorder = recorder.units { inherit bin; };
      workload = workload { inherit bin; };
    };
  ofPolicy =
    policy:
    let
      has = parts null policy;
    in
    listToAttrs (
      map (kind: {
        name = "provider-${kind}.service";
        value = true;
      }) (attrNames policy.provider)
    )
    // (if has.certificates then starting.certificates else { })
    // (if has.store then starting.store else { });
in
{ manifest, policy }:
let
  has = parts manifest policy;
in
starting.always
// (if has.credentials then starting.credentials else { })
// (if has.ingress then starting.ingress else { })
// (if has.recorder then mapAttrs (_: _: has.records) starting.recorder else { })
// (if has.workload then starting.workload else { })
// (if policy == null then { } else ofPolicy policy)
// started (host {
  inherit manifest;
  bin = "";
})
// listToAttrs (
  map (n: {
    name = "need-${n.id}.path";
    value = false;
  }) (delivering manifest.needs)
)

# Foreign trust domains and other clusters as data.
# Topology -> { clusters, federated }
t:
let
  inherit (builtins)
    any
    attrValues
    elem
    filter
    listToAttrs
    mapAttrs
    ;
  inherit (import ../../lib) only optionalAttrs;
  publicNames = import ../publicnames.nix;
  signIn = import ../signinelsewhere.nix;

  # The identities and services of another cluster, by ID.
  elsewhere = f: {
    identities = listToAttrs (
      map (i: {
        inherit (i) name;
        value = i.roles;
      }) f.identities
    );
    services = listToAttrs (
      map (s: {
        inherit (s.instance) name;
        value = s.roles;
      }) f.services
    );
  }
  // (
    let
      public = filter (s: s.tlsName != "") f.services;
      enters = s: h: publicNames.serves h s && any (r: elem r s.roles) h.roles;
    in
    optionalAttrs (public != [ ]) {
      entrances = listToAttrs (
        map (s: {
          inherit (s.instance) name;
          value = map (h: h.id) (filter (enters s) (attrValues t.hosts));
        }) public
      );
    }
  );
in
{
  federated = mapAttrs (
    _: f:
    only [
      "bundle"
      "endpoint"
      "endpointID"
      "profile"
      "trustDomain"
    ] f
    // elsewhere f
  ) t.federated;
  clusters = mapAttrs (
    n: c:
    elsewhere c
    // optionalAttrs ((signIn.clients t).${n} != [ ]) { clients = map (c: c.grant // { inherit (c) sshHostKey; }) (signIn.clients t).${n}; }
    // optionalAttrs ((signIn.needs t).${n} != [ ]) { signIns = (signIn.needs t).${n}; }
  ) t.clusters;
}

# The evaluation of the flake output `florete` for Go: the topology, and the documents of some
# hosts, or of all if none is named. With named hosts, only faults that block them are returned.
# Errors withhold the documents, warnings do not. With `bin`, the directory of the commands, it also
# returns the units of one host. To validate without a name, each of several clusters is evaluated.
{
  cluster,
  validate ? false,
  topology ? false,
  documents ? false,
  hosts ? [ ],
  bin ? null,
}:
clusters:
let
  inherit (builtins)
    all
    attrNames
    attrValues
    concatMap
    filter
    head
    isAttrs
    length
    listToAttrs
    mapAttrs
    ;
  names = attrNames clusters;
  several = cluster == "" && length names > 1;
  when = condition: set: if condition then set else { };
  filterAttrs = ok: set: removeAttrs set (filter (n: !ok set.${n}) (attrNames set));
  # A service as a host runs it. Its units are in the manifest.
  run = s: {
    inherit (s) protocol user;
    upstream =
      if s.upstream == "" && s.port != null then "127.0.0.1:${toString s.port}" else s.upstream;
    ports = mapAttrs (_: p: { inherit (p) upstream protocols; }) s.ports or { };
    units = [ ];
  };
  # Reports whether a value is a result of mkCluster.
  isCluster = v: isAttrs v && v ? faults && v ? documents && v ? topology;
  # The answer for one cluster.
  answer =
    chosen:
    let
      c = clusters.${chosen};
      some = filter (h: c.documents ? ${h}) hosts;
      faults =
        if documents && hosts != [ ] then concatMap (h: c.faultsOf.${h} or c.faults) some else c.faults;
    in
    {
      clusters = names;
    }
    // when (clusters ? ${chosen} && !isCluster c) { foreign = chosen; }
    // when (clusters ? ${chosen} && isCluster c) (
      {
        inherit (c) name;
        inherit faults;
      }
      // when validate {
        hosts = attrNames c.documents;
        inherit (c.topology) trust;
        validated = {
          inherit (c.topology) hosts;
          federated = mapAttrs (_: f: removeAttrs f [
            "identities"
            "services"
          ]) c.topology.federated or { };
        };
      }
      // when (validate && length names > 1) {
        # Values that the clusters of a flake must agree on.
        together =
          let
            t = c.topology;
            ids = concatMap (s: s.ids) (attrValues t.services);
            named = f: {
              identities = attrNames f.identities;
              services = attrNames f.services;
              admitted = attrNames (filterAttrs (roles: roles != [ ]) f.identities);
              entrances = f.entrances or { };
              clients = f.clients or [ ];
              signIns = f.signIns or [ ];
            };
          in
          {
            inherit (t) trustDomain;
            inherit (t.trust) roots;
            services = mapAttrs (name: _: "spiffe://${t.trustDomain}/service/${name}") (
              filterAttrs (s: s.published && s.scope != "node" && s.ids != [ ]) t.services
            );
            known = ids ++ map (e: e.id) (attrValues t.hosts ++ attrValues t.users);
            foreign = mapAttrs (_: f: { inherit (f) trustDomain; } // named f) t.federated or { };
            clusters = mapAttrs (_: named) t.clusters or { };
          };
      }
      // when (all (f: f.severity != "error") faults) (
        when topology { inherit (c) topology; }
        // when documents {
          hosts = attrNames c.documents;
          systems = listToAttrs (
            map (h: {
              name = h;
              value = c.topology.hosts.${h}.system;
            }) some
          );
          instances = listToAttrs (
            map (h: {
              name = h;
              value = c.topology.hosts.${h}.instance;
            }) some
          );
          documents =
            if hosts == [ ] then
              c.compiled or c.documents
            else
              listToAttrs (
                map (h: {
                  name = h;
                  value = c.documents.${h};
                }) some
              );
        }
        // when (bin != null && some != [ ]) (
          let
            h = head some;
          in
          {
            inherit (c) sysctl;
            sysusers = c.sysusers.${h};
            units = (c.unitsIn bin).${h};
            runs = listToAttrs (
              map (name: {
                inherit name;
                value = run c.topology.services.${name};
              }) c.topology.hosts.${h}.services
            );
          }
        )
      )
    );
in
if isCluster clusters then
  { unnamed = true; }
else if several && validate then
  { each = map answer names; }
else
  answer (if cluster == "" && length names == 1 then head names else cluster)

# What Go asks of the flake output `florete`, in one evaluation: the topology, and
# the documents of some hosts, of all when none is named.
{ cluster, topology ? false, documents ? false, hosts ? [ ] }: clusters:
let
  inherit (builtins) attrNames filter head length listToAttrs;
  names = attrNames clusters;
  chosen = if cluster == "" && length names == 1 then head names else cluster;
  c = clusters.${chosen};
  when = condition: set: if condition then set else { };
  wanted = if hosts == [ ] then attrNames c.documents else filter (h: c.documents ? ${h}) hosts;
in
{ clusters = names; } // when (clusters ? ${chosen}) (
  { inherit (c) faults name; } // when (c.faults == [ ]) (
    when topology { inherit (c) topology; }
    // when documents {
      hosts = attrNames c.documents;
      documents = listToAttrs (map (h: { name = h; value = c.documents.${h}; }) wanted);
    }))

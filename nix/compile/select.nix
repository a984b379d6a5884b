# What Go asks of the flake output `florete`, in one evaluation.
{ cluster, hosts }: clusters:
let
  inherit (builtins) attrNames filter head length listToAttrs;
  names = attrNames clusters;
  chosen = if cluster == "" && length names == 1 then head names else cluster;
  c = clusters.${chosen};
  sound = c.faults == [ ];
  wanted = if hosts == [ ] then attrNames c.documents else filter (h: c.documents ? ${h}) hosts;
in
{ clusters = names; } // (if !clusters ? ${chosen} then { } else {
  inherit (c) faults name;
} // (if !sound then { } else {
  hosts = attrNames c.documents;
  documents = listToAttrs (map (h: { name = h; value = c.documents.${h}; }) wanted);
}))

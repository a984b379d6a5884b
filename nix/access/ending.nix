# When access by roles with an end is over: nothing for an ID that also holds one of the roles
# without an end, otherwise the latest end.
# Topology -> [roleName] -> id -> { until :: Int } | { }
t:
let
  inherit (builtins)
    any
    attrValues
    concatMap
    elem
    filter
    foldl'
    listToAttrs
    ;
  timed = filter (holder: holder.until != { });
  by = value: name: { inherit name value; };
  holders = listToAttrs (
    map (h: by t.hosts.${h} t.hosts.${h}.id) t.timed
    ++ map (u: by u u.id) (timed (attrValues t.users))
    ++ concatMap (s: map (i: by s i.name) s.instances) (timed (attrValues t.services))
  );
in
if holders == { } then
  _: _: { }
else
  roles: id:
  let
    holder = holders.${id};
    held = filter (role: elem role holder.roles) roles;
  in
  if !holders ? ${id} || any (role: !holder.until ? ${role}) held then
    { }
  else
    { until = foldl' (last: role: if holder.until.${role} > last then holder.until.${role} else last) 0 held; }

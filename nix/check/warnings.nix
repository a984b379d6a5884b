# What is probably not meant. No host waits for it, so none looks at it.
{ access, clean, shapes, t, tools, ... }:
let
  inherit (builtins)
    any
    attrValues
    concatStringsSep
    elem
    filter
    groupBy
    head
    map
    mapAttrs
    ;
  inherit (tools) fault serviceOf show when;
  names = import ../names.nix;

  # What is on another host is that host's to publish: forwarders encrypt, an upstream does not.
  at = groupBy (h: h.address) (filter (h: h.address != "") (attrValues t.hosts));
  upstream = n: s:
    let
      machine = if s.upstream == "" then null else names.machine s.upstream;
      there = at.${machine} or [ ];
    in
    when (machine != null && there != [ ] && !any (h: elem h.name t.services.${n}.hosts) there) [
      (fault {
        id = "FL043";
        place = "services.${n}.upstream";
        problem = "bytes would leave the forwarder in the clear for host ${(head there).name}, at";
        value = show s.upstream;
        remedy = "write host = ${show (head there).name};, which carries them encrypted, or acknowledge this";
      })
    ];

  # Signing in takes the service to the pages of the issuer, where that is in the cluster.
  issuer = serviceOf t.providers.oidc.issuer;
  signsIn = n: s:
    let
      holders = [ t.services.${n} ] ++ map (h: t.hosts.${h}) t.services.${n}.hosts;
      reaches = any (p: any (r: elem r access.leading.${issuer} or [ ]) p.roles) holders;
    in
    when (s.sso.mode == "oidc" && issuer != null && t.services ? ${issuer} && t.services.${n}.hosts != [ ] && !reaches) [
      (fault {
        id = "FL045";
        place = "services.${n}.sso";
        problem = "signing in asks the issuer, which the service may not reach:";
        value = "service ${issuer}";
        remedy = "give services.${n}.roles a role that reaches ${issuer}";
      })
    ];

  reachable = n: s: when (t.services.${n}.published && t.services.${n}.hosts != [ ] && access.allow.${n} == [ ]) [
    (fault {
      id = "FL041";
      place = "services.${n}";
      problem = "it is published and may be reached by";
      value = "nobody";
      remedy =
        if access.leading.${n} or [ ] != [ ] then "give ${concatStringsSep " or " access.leading.${n}} to someone"
        else "name it in a role that someone has, or set visibility = \"host\"";
    })
  ];

  user = n: u: when (shapes.users.${n} == [ ]) (
    when (u.roles == [ ]) [
      (fault {
        id = "FL040";
        place = "users.${n}";
        problem = "the user may reach nothing, having";
        value = "no role";
        remedy = "write users.${n}.roles = [ \"…\" ];, or take the user out";
      })
    ]
    ++ when (u.roles != [ ] && t.users.${n}.hosts == [ ]) [
      (fault {
        id = "FL044";
        place = "users.${n}";
        problem = "the user can act on";
        value = "no host";
        remedy = "name the user in the users of a host, such as a laptop, or take the user out";
      })
    ]);
in
{
  services = mapAttrs (n: s: upstream n s ++ signsIn n s ++ reachable n s) clean.services;
  users = mapAttrs user clean.users;
}

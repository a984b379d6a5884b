# Faults of a declaration of another cluster: its identities with roles, and its services that roles
# lead to.
# { access, clean, lib, needs, t, … } -> name -> place -> { identities, services, … } -> [Fault]
{
  access,
  clean,
  lib,
  needs,
  t,
  ...
}:
let
  inherit (builtins)
    any
    attrNames
    attrValues
    concatMap
    elem
    split
    ;
  inherit (lib)
    attribute
    fault
    faultIf
    reserved
    role
    show
    when
    ;
  inherit (lib) excluded;
  inherit (builtins) filter head;
  inherit (import ../language/formats) isIdentity;
  inherit (import ../lib) isInvalid;
  names = import ../lib/names.nix;
  publicNames = import ../resolve/publicnames.nix;
  owners = publicNames.owners (attrValues clean.services);
  abroad = publicNames.abroad t;
  unwritten = (import ../language/service.nix).zero.ingress;
  signIn = import ../resolve/signinelsewhere.nix;
  clients = concatMap (c: c) (attrValues (signIn.clients t));
  nodeID = node: names.id clean.trustDomain "node/${node}";

  # Faults of the public name of a service at an ingress here.
  publicName =
    at: id: s:
    let
      others = filter (o: o.tlsName == s.tlsName && o.name != id) abroad;
      own = owners.${s.tlsName} or [ ];
      serving = filter (
        h: publicNames.serves h s && access.reachableOn.${h.name} ? ${id}
      ) (attrValues t.hosts);
    in
    if s.tlsName == "" then
      when (s.ingress != unwritten) (
        excluded "write tlsName = \"…\";, or take the rules out" "${at}.ingress" "no tlsName"
      )
    else
      when (s.protocol == "udp") (
        excluded "take the name out: strangers who send datagrams name nobody" "${at}.tlsName"
          "protocol = \"udp\""
      )
      ++ faultIf (!isInvalid s.tlsName && own ++ others != [ ]) {
        id = "FL027";
        place = "${at}.tlsName";
        problem = "service ${if own != [ ] then (head own).s.name else (head others).name} has it, too:";
        value = show s.tlsName;
        remedy = "give one of them another name, or tell them apart by path behind one service";
      }
      ++ lib.host "${at}.ingress.hosts" s.ingress.hosts
      ++ map (
        p:
        fault {
          id = "FL169";
          place = "${at}.ingress.paths.${attribute p.name}.port";
          problem = "a service of another cluster has one port here, and not";
          value = show p.port;
          remedy = "take the port out, or declare it as a service of its own";
        }
      ) (filter (p: p.port != "") (attrValues s.ingress.paths))
      ++ faultIf (!isInvalid s.tlsName && serving == [ ]) {
        id = "FL176";
        place = "${at}.tlsName";
        problem = "no ingress here reaches the service, so strangers cannot at";
        value = show s.tlsName;
        remedy = "give the node of a host with capabilities = [ \"ingress\" ] a role that leads to the service";
      };

  # Reports whether s@n is also a part of a service.
  isPart =
    n: s:
    clean.services ? ${s}
    && clean.services.${s}.scope != "cluster"
    && (
      clean.hosts ? ${n}
      || clean.hostGroups ? ${n}
      || any (h: elem n h.tags || elem n (split "/" h.group)) (attrValues clean.hosts)
      || any (g: elem n g.tags) (attrValues clean.hostGroups)
    );
  named =
    name:
    any (r: elem name r.services || elem name r.except) (attrValues clean.roles)
    || any (elem name) (attrValues clean.serviceGroups);
in
n: place: f:
concatMap (
  i:
  let
    at = "${place}.identities.${attribute i}";
    of = f.identities.${i}.roles;
  in
  faultIf (!isIdentity i) {
    id = "FL004";
    place = at;
    problem = "no identity of a trust domain:";
    value = show i;
    remedy = "write what follows the trust domain in its SPIFFE ID: \"user/alice\", \"service/backup\", \"service/forge/backup\" or \"node/forge\"";
  }
  ++ role "${at}.roles" of
  ++ concatMap (r: when (elem r of) [ (reserved "${at}.roles" r) ]) [
    "node"
    "operator"
  ]
) (attrNames f.identities)
++ concatMap (
  s:
  let
    at = "${place}.services.${attribute s}";
  in
  faultIf (!isIdentity "service/${s}") {
    id = "FL004";
    place = at;
    problem = "no service of a trust domain:";
    value = show s;
    remedy = "write what follows service/ in its SPIFFE ID: \"wiki\", or \"forge/wiki\"";
  }
  ++ role "${at}.roles" f.services.${s}.roles
  ++ publicName at (names.id (f.trustDomain or clean.trustDomain) "service/${s}") f.services.${s}
  ++ faultIf (isPart n s && named "${s}@${n}") {
    id = "FL136";
    place = at;
    problem = "${show "${s}@${n}"} also means the part of a service here, by the name";
    value = show n;
    remedy = "call ${place} something that no host, group of hosts or tag is called";
  }
) (attrNames f.services)
++ concatMap (
  path:
  let
    at = "${place}.clients.${attribute path}";
    client = f.clients.${path};
    nodes = attrNames client.nodes;
    need = signIn.need path;
    # Another client whose request is that of this one.
    rivals = filter (
      c:
      c.path != path && c.grant.need == need && any (node: c.grant.caller == nodeID node) nodes
    ) clients;
    here = filter (node: any (w: w.id == need) (needs.${node} or [ ])) nodes;
  in
  faultIf (!isIdentity "service/${path}") {
    id = "FL004";
    place = at;
    problem = "no service of a trust domain:";
    value = show path;
    remedy = "write what follows service/ in its SPIFFE ID: \"wiki\", or \"forge/wiki\"";
  }
  ++ when (client.redirectURIs == [ ]) (
    lib.missing at "redirectURIs" "write redirectURIs = [ \"https://…\" ]; as in the other cluster"
  )
  ++ when (nodes == [ ]) (
    lib.missing at "nodes" "write nodes = { <host> = \"ssh-ed25519 …\"; }; with the hosts of the service in the other cluster"
  )
  ++ when (clean.providers.oidc.registration != "") (
    excluded "take it out: only an issuer of Florete has clients of other clusters" at
      "providers.oidc.registration"
  )
  ++ faultIf (rivals != [ ] || here != [ ]) {
    id = "FL185";
    place = "${at}.nodes";
    problem = "a node asks for two clients by the need";
    value = need;
    remedy = "let each node have one of them, or give one service another name";
  }
) (attrNames (f.clients or { }))
++ concatMap (
  host:
  let
    others = filter (c: c != n && clean.clusters.${c}.oidc.hosts ? ${host}) (attrNames clean.clusters);
    own = elem host clean.providers.oidc.hosts;
  in
  faultIf (own || others != [ ]) {
    id = "FL186";
    place = "${place}.oidc.hosts.${attribute host}";
    problem = "${
      if own then "providers.oidc.hosts" else "clusters.${attribute (head others)}.oidc.hosts"
    } has a host of the same name, and nobody can tell their providers apart:";
    value = show host;
    remedy = "move one of the two providers to another host";
  }
) (attrNames (f.oidc.hosts or { }))

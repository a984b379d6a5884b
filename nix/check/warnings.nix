# Warnings about probable mistakes. They block no host, so no host evaluates them. Warnings that
# concern no entry are in `top`.
{
  access,
  clean,
  kinds,
  shapes,
  t,
  lib,
  ...
}@arguments:
let
  inherit (builtins)
    any
    attrNames
    attrValues
    concatLists
    concatMap
    concatStringsSep
    elem
    filter
    groupBy
    head
    length
    listToAttrs
    mapAttrs
    zipAttrsWith
    ;
  inherit (import ../lib) invert toSet;
  inherit (lib)
    attribute
    fault
    faultIf
    show
    suggest
    when
    ;
  ofKinds = map (k: k.warnings.service) (filter (k: k ? warnings.service) kinds);
  names = import ../lib/names.nix;
  cordon = import ./cordon.nix arguments;
  ends = import ./until.nix arguments;
  ended = ends.warnings;
  template = import ./template.nix arguments;
  facts = import ./facts.nix lib;
  idle = import ./idle.nix arguments;
  logins = import ./logins.nix arguments;
  record = import ./record.nix arguments;

  # An upstream on another host should be a service of that host: forwarders encrypt, a connection
  # to an upstream is not encrypted.
  at = invert (h: h.machines) (attrValues t.hosts);
  upstream =
    n: s:
    if s.ports == { } then
      upstreamOf n "services.${n}" s
    else
      concatMap (p: upstreamOf n "services.${n}.ports.${lib.attribute p.name}" p) (attrValues s.ports);
  upstreamOf =
    n: place: of:
    let
      machine = if of.upstream == "" then null else names.machine of.upstream;
      there = at.${machine} or (if t.hosts ? ${machine} then [ machine ] else [ ]);
    in
    faultIf (machine != null && there != [ ] && !any (h: elem h t.services.${n}.hosts) there) {
      id = "FL043";
      place = "${place}.upstream";
      problem = "bytes would leave the forwarder in the clear for host ${head there}, at";
      value = show of.upstream;
      remedy = "write host = ${show (head there)};, which carries them encrypted, or acknowledge this";
    };

  # Services that no role with a holder leads to.
  unreached = removeAttrs clean.services (
    concatMap (role: access.members.${role}) (
      filter (role: access.holders.${role} != [ ]) (attrNames t.roles)
    )
  );
  reachable =
    n: _:
    faultIf (t.services.${n}.published && t.services.${n}.hosts != [ ] && shapes.services.${n} == [ ]) {
      id = "FL041";
      place = "services.${n}";
      problem = "the service is published, but it may be reached by";
      value = "no principal";
      remedy =
        if access.leading.${n} or [ ] != [ ] then
          "give ${concatStringsSep " or " access.leading.${n}} to someone"
        else
          "name it in a role that someone has, or set visibility = \"host\"";
    };

  # A group applies to the hosts in it and in the groups below it.
  inhabited = toSet (concatMap t.outward (attrNames (groupBy (h: h.group) (attrValues clean.hosts))));
  hostGroups = map (
    g:
    fault {
      id = "FL046";
      place = "hostGroups.${attribute g}";
      problem = "the group applies to";
      value = "no host";
      remedy =
        if removeAttrs inhabited [ "" ] == { } then
          "write group = ${show g}; in the hosts that are in it"
        else
          suggest "group of hosts" g (attrNames inhabited);
    }
  ) (filter (g: !inhabited ? ${g}) (attrNames clean.hostGroups));

  # A process acts under the first of the identities of its account, regardless of the others.
  # Somebody who writes `callers` for it intends that.
  accounts =
    n: h:
    let
      identities = access.acting.${n};
      all = concatMap (i: i.users ++ i.uids ++ i.units) identities;
      of = i: filter (a: a != "") i.users ++ map toString i.uids ++ i.units;
      claims = concatMap (
        i:
        map (name: {
          inherit name;
          value = i;
        }) (of i)
      ) identities;
      first = listToAttrs claims;
      lost =
        i: account:
        let
          acts = first.${account};
        in
        faultIf (!h.callers ? ${acts.key} && removeAttrs i.reach (attrNames acts.reach) != { }) {
          id = "FL047";
          place = "hosts.${n}.callers.${attribute i.key}";
          problem = "account ${account} reaches less than it should, for it acts as";
          value = acts.key;
          remedy = "give each an account of its own, or say in hosts.${n}.callers who acts as what";
        };
    in
    when (length (attrNames (groupBy toString all)) < length all) (
      concatMap (i: concatMap (lost i) (of i)) identities
    );

  endedGroups = concatMap (
    g:
    let
      of = clean.hostGroups.${g};
    in
    if of.until == { } then [ ] else ended "hostGroups.${attribute g}" of
  ) (attrNames clean.hostGroups);

  # Other hosts on the same network write the same name.
  members = invert (h: attrNames h.networks) (attrValues t.hosts);
  networks =
    n: h:
    map (
      network:
      fault {
        id = "FL061";
        place = "hosts.${n}.networks.${attribute network}";
        problem = "no other host is on the network";
        value = show network;
        remedy = suggest "other network" network (attrNames (removeAttrs members [ network ]));
      }
    ) (filter (network: length members.${network} == 1) (attrNames h.networks));

  service =
    n: s:
    (if s.upstream == "" && s.ports == { } then [ ] else upstream n s)
    ++ (if s.facts == { } then [ ] else facts "services.${n}" s)
    ++ (if s.record.recipients == [ ] then [ ] else record.warnings n s)
    ++ (if s.until == { } then [ ] else ended "services.${n}" s)
    ++ (if t.wanting ? ${n} then concatMap (k: k n s) ofKinds else [ ]);
in
{
  top = hostGroups ++ endedGroups ++ import ./clusterwarnings.nix arguments ++ template.top;
  hosts = mapAttrs (
    n: h:
    accounts n h
    ++ (if h.networks == { } then [ ] else networks n h)
    ++ (if h.drain || h.cordon then cordon.host n h else [ ])
    ++ (if h.keeps == [ ] then [ ] else cordon.keeps n h)
    ++ template.host n h
    ++ (if h.facts == { } then [ ] else facts "hosts.${n}" h)
    ++ (if h.until == { } then [ ] else ended "hosts.${n}" h)
  ) clean.hosts;
  roles = mapAttrs (
    n: r: idle.role n r ++ (if r.logins == { } then [ ] else logins.warnings n r)
  ) clean.roles;
  services = zipAttrsWith (_: concatLists) [
    (mapAttrs service clean.services)
    (mapAttrs reachable unreached)
  ];
  users = mapAttrs (n: u: idle.user n u ++ ended "users.${n}" u) clean.users;
  teams = mapAttrs (n: of: idle.team n of ++ ended "teams.${n}" of ++ ends.membersEnded "teams.${n}" of) clean.teams;
}

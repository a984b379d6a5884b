# Functions that the checks share.
t:
let
  inherit (builtins)
    any
    attrNames
    attrValues
    concatMap
    concatStringsSep
    elem
    elemAt
    filter
    groupBy
    head
    isFunction
    length
    match
    replaceStrings
    tail
    ;
  inherit (import ../lib) isInvalid when;
  inherit (import ../lib/fault.nix) fault faultIf;
  inherit ((import ../lib/constants.nix).spiffe) suffix;
  inherit (import ../lib/text.nix)
    attribute
    password
    secret
    show
    suggest
    ;

  # Faults of names that are not in a set. Empty names too, but not wrong values and secrets, which
  # have been reported.
  unknown =
    id: what: set: place: names:
    let
      missing = filter (n: !set ? ${n} && !isInvalid n && !secret n && !password n) names;
    in
    if names == [ ] then
      [ ]
    else
      map (
        n:
        fault {
          inherit id place;
          problem = "unknown ${what}";
          value = show n;
          remedy = suggest what n (attrNames set);
        }
      ) missing;

  services = import ./named.nix { inherit t unknown; };

  domain = replaceStrings [ "." ] [ "\\." ] t.trustDomain;
  serviceOf =
    url:
    let
      part = match "https?://([a-z0-9-]+)(\\.[a-z0-9-]+)?\\.${domain}\\${suffix}([:/?#].*)?" url;
      above = elemAt part 1;
    in
    if part == null then
      null
    else if above == null then
      t.aliases.${head part} or (head part)
    else
      t.aliases."*${above}" or (head part);
in
{
  inherit
    attribute
    fault
    faultIf
    show
    suggest
    unknown
    when
    ;

  # `node` belongs to every node and nothing else; `operator` is assigned explicitly.
  # reserved :: String -> String -> Fault
  reserved =
    place: name:
    fault {
      id = "FL018";
      inherit place;
      problem = "the reserved role does not belong here:";
      value = show name;
      remedy =
        {
          node = "every node has it already: write a role of your own with the same services and groups";
          operator = "give it by hand, in hosts.<name>.roles or users.<name>.roles";
        }
        .${name};
    };

  # Faults of a missing attribute, and of one that another attribute excludes.
  # missing, excluded :: String -> String -> String -> [Fault]
  missing = place: value: remedy: [
    (fault {
      id = "FL003";
      inherit place value remedy;
      problem = "missing attribute";
    })
  ];
  excluded = remedy: place: value: [
    (fault {
      id = "FL009";
      inherit place value remedy;
      problem = "given together with";
    })
  ];

  # Faults of the port in a URL below the trust domain. All hosts call a service at one port; only
  # SOCKS5 accepts others.
  # answers :: String -> String -> [Fault]
  answers =
    place: url:
    let
      name = serviceOf url;
      part = match "(https?)://[^/?#:]+(:([0-9]+))?([/?].*)?" url;
      port =
        if elemAt part 2 != null then
          elemAt part 2
        else if head part == "https" then
          "443"
        else
          "80";
      service = t.services.${name};
      ports = map (p: toString p.number) service.ports;
    in
    if
      name == null
      || part == null
      || !t.services ? ${name}
      || any (p: isInvalid p.number) service.ports
      || elem port ports
    then
      [ ]
    else
      [
        (fault {
          id = "FL028";
          inherit place;
          problem = "service ${name} has the port ${concatStringsSep " or " ports} for callers, not";
          value = port;
          remedy = "write services.${name}.${
            if service.several then "ports.<name>" else "listenPort"
          } = ${port};, or that port in the URL";
        })
      ];

  # The service that a URL below the trust domain names, or null.
  # serviceOf :: String -> String | null
  inherit serviceOf;
  # A fault if the URL names an unknown service.
  # named :: String -> String -> [Fault]
  named =
    place: url:
    let
      name = serviceOf url;
    in
    if name == null then [ ] else unknown "FL011" "service" t.services place [ name ];

  # Faults of unknown names in a list.
  # host, service, part, user, role, group :: String -> [String] -> [Fault]
  host = unknown "FL010" "host" t.hosts;
  service = services.whole;
  part = services.parts;
  user = unknown "FL012" "user" t.users;
  role = unknown "FL013" "role" t.roles;
  group = unknown "FL014" "group" t.serviceGroups;

  # Faults of all but the first of the items that share a key. The remedy is a text, or a function
  # of the first item and the later one.
  # twice :: { … } -> [a] -> [Fault]
  twice =
    {
      id,
      key,
      place,
      problem,
      remedy,
      show ? key,
      what ? (e: e.name),
    }:
    list:
    let
      groups = groupBy key list;
      later =
        same:
        map (
          e:
          fault {
            inherit id;
            place = place e;
            problem = problem (what (head same));
            remedy = if isFunction remedy then remedy (head same) e else remedy;
            value = show e;
          }
        ) (tail same);
    in
    if length (attrNames groups) == length list then [ ] else concatMap later (attrValues groups);
}

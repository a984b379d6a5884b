# What checks share.
t:
let
  inherit (builtins)
    attrNames
    attrValues
    concatMap
    filter
    groupBy
    head
    length
    map
    match
    replaceStrings
    tail
    toJSON
    ;
  inherit (import ../fault.nix) fault;
  inherit (import ../text.nix) password secret show suggest;

  # Names that are not in a set. What stands for none, "?" for a wrong one and secrets
  # were reported already.
  unknown = id: what: set: place: names:
    let
      missing = filter (n: !set ? ${n} && n != "" && n != "?" && !secret n && !password n) names;
    in
    map
      (n: fault {
        inherit id place;
        problem = "unknown ${what}";
        value = show n;
        remedy = suggest what n (attrNames set);
      })
      missing;

  serviceOf = url:
    let
      domain = replaceStrings [ "." ] [ "\\." ] t.trustDomain;
      part = match "https?://([a-z0-9-]+)(\\.[a-z0-9-]+)?\\.${domain}\\.rete([:/?#].*)?" url;
    in
    if part == null then null else head part;
in
{
  inherit fault show suggest unknown;

  # A name as it is written behind a dot.
  attribute = n: if match "[A-Za-z_][A-Za-z0-9_-]*" n != null then n else toJSON n;

  # `node` is given to every node and to nothing else, `operator` by hand alone.
  reserved = place: name: fault {
    id = "FL018";
    inherit place;
    problem = "the reserved role does not belong here:";
    value = show name;
    remedy = {
      node = "every node has it already: write a role of your own with the same services and groups";
      operator = "give it by hand, in hosts.<name>.roles or users.<name>.roles";
    }.${name};
  };

  when = condition: faults: if condition then faults else [ ];

  # The service that a URL names below the trust domain, null when it is elsewhere.
  inherit serviceOf;
  named = place: url:
    let name = serviceOf url; in
    if name == null then [ ] else unknown "FL011" "service" t.services place [ name ];

  host = unknown "FL010" "host" t.hosts;
  service = unknown "FL011" "service" t.services;
  user = unknown "FL012" "user" t.users;
  role = unknown "FL013" "role" t.roles;
  group = unknown "FL014" "group" t.groups;

  # Of the things that share a key, all but the first are faults.
  twice = { id, key, place, problem, remedy, show ? key, what ? (e: e.name) }: list:
    let
      groups = groupBy key list;
      later = same: map
        (e: fault {
          inherit id remedy;
          place = place e;
          problem = problem (what (head same));
          value = show e;
        })
        (tail same);
    in
    if length (attrNames groups) == length list then [ ] else concatMap later (attrValues groups);
}

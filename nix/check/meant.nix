# Suggests a service for an unknown name: one in the form of an address or ID, in another order, or
# misspelled. A suggestion never grants more access than the written name could.
{ t }:
let
  inherit (builtins)
    all
    any
    attrNames
    concatMap
    concatStringsSep
    elem
    elemAt
    filter
    head
    isString
    length
    match
    replaceStrings
    split
    stringLength
    toJSON
    ;
  inherit (import ../lib) sorted;
  inherit ((import ../lib/constants.nix).spiffe) suffix;
  part = import ../resolve/part.nix;
  inherit (import ../lib/text.nix) suggest within;

  scoped =
    s:
    elem s.scope [
      "both"
      "node"
    ];
  # The words that may follow the @: hosts of the service, their groups and tags.
  places =
    s:
    if !scoped s then
      [ ]
    else
      filter (at: at != "") (
        sorted (concatMap (h: [ h ] ++ t.outward t.hosts.${h}.group ++ t.hosts.${h}.tags) s.hosts)
      );
  # A port over two protocols is in the list twice.
  ports = s: if s.several then sorted (map (p: p.name) s.ports) else [ ];
  numbered = s: number: filter (p: toString p.number == number) (if s.several then s.ports else [ ]);
  # The names of all parts of a service.
  parts =
    name:
    let
      s = t.services.${name};
      of = map (p: ":${p}") (ports s);
    in
    map (p: name + p) of
    ++ concatMap (at: map (p: "${name}@${at}${p}") ([ "" ] ++ of)) (places s);

  # "http://shell.forge.demo.flor.rete:80/" → "shell.forge" with the name of the port.
  domain = replaceStrings [ "." ] [ "\\." ] t.trustDomain;
  plain =
    n:
    let
      url = match "(https?)://([^/?#:]*)(:([0-9]+))?([/?#].*)?" n;
      host = if url == null then n else elemAt url 1;
      below = match "(.*)\\.${domain}(\\${suffix})?" host;
    in
    {
      name = if below == null then host else head below;
      port =
        if url == null then
          null
        else if elemAt url 3 != null then
          elemAt url 3
        else if head url == "https" then
          "443"
        else
          "80";
    };
  flat = replaceStrings [ "@" ":" "/" ] [ "." "." "." ];
  words = name: filter (w: isString w && w != "") (split "[.@:/]" name);
  join = concatStringsSep ".";
  # Other orders of the words: of two, the service may be the second; of three, the port may come
  # before the host.
  orders =
    w:
    if length w == 2 then
      [
        (join w)
        (join [
          (elemAt w 1)
          (head w)
        ])
      ]
    else if length w == 3 then
      [
        (join w)
        (join [
          (head w)
          (elemAt w 2)
          (elemAt w 1)
        ])
      ]
    else
      [ (join w) ];

  # The same @ and port with other services that have them.
  alike =
    n:
    let
      of = part.split n;
      fits =
        s:
        (of.at == null || elem of.at (places s)) && (of.port == null || elem of.port (ports s));
      rest =
        (if of.at == null then "" else "@${of.at}") + (if of.port == null then "" else ":${of.port}");
    in
    if of == null then
      [ ]
    else
      map (s: s + rest) (filter (s: fits t.services.${s}) (attrNames t.services));

  remedy =
    n:
    let
      of = plain n;
      written = words of.name;
      here = filter (s: t.services ? ${s}) written;
      # The host adds nothing to the name of a service that is on one host.
      w = if here == [ ] || scoped s then written else filter (x: x == name || [ x ] != s.hosts) written;
      # If the service is misspelled, it is the first word.
      near = filter (within (if stringLength (head w) > 3 then 2 else 1) (head w)) (attrNames t.services);
      bases = if here != [ ] || length w < 2 then here else near;
      elsewhere = attrNames t.elsewhere;
      candidates = concatMap parts bases ++ elsewhere;
      by = k: filter (c: any (f: within k f (flat c)) (orders w)) candidates;
      best = by 0 ++ by 1 ++ (if all (x: stringLength x > 3) w then by 2 else [ ]);

      name = head here;
      s = t.services.${name};
      called = if of.port == null then [ ] else numbered s of.port;
      own = parts name;
      others = alike n;
      any' = suggest "service" n (if others == [ ] then attrNames t.services ++ elsewhere else others);
    in
    if stringLength n > 255 || written == [ ] then
      any'
    else if here != [ ] && length w == 1 && called != [ ] && s.scope != "node" then
      "did you mean ${toJSON "${name}:${(head called).name}"}?"
    else if here != [ ] && length w == 1 && s.scope != "node" && (of.port == null || !s.several) then
      "did you mean ${toJSON name}?"
    else if length w > 1 && best != [ ] then
      "did you mean ${toJSON (head best)}?"
    else if here != [ ] && own != [ ] then
      suggest "part" n own
    else if here != [ ] then
      "${toJSON name} is the service on all of its hosts: write that if all are meant, or make a service of the one"
    else
      any';
in
{
  inherit
    parts
    places
    ports
    remedy
    scoped
    ;
}

# Faults of further names of a service: public names, and aliases.
{ clean, lib, t, ... }:
let
  inherit (builtins)
    attrValues
    concatMap
    filter
    groupBy
    head
    length
    match
    substring
    ;
  inherit (import ../lib) isInvalid sorted;
  inherit (lib)
    excluded
    fault
    faultIf
    missing
    show
    when
    ;
  below = substring 2 (-1);
  isWild = name: substring 0 2 name == "*.";
  both = excluded "keep one of the two";

  # name → the services that have it, once for each time it is written
  having =
    of:
    groupBy (e: e.name) (
      concatMap (s: map (name: { inherit name s; }) (filter (a: !isInvalid a) (of s))) (
        attrValues clean.services
      )
    );
  # If several services have a name, the first keeps it.
  taken =
    id: place: remedy: first: names:
    concatMap (
      name:
      let
        owner = first name;
      in
      faultIf (owner != null) {
        inherit id place remedy;
        problem = "service ${owner} already has";
        value = show name;
      }
    ) names;
  # The service that has a name before service n, or null if n has it, and only once.
  before =
    by: n: name:
    let
      all = by.${name};
      own = filter (e: e.s.name == n) all;
    in
    if (head all).s.name != n then
      (head all).s.name
    else if length own > 1 then
      n
    else
      null;

  # A public name leads to one service.
  public = having (s: filter (name: name != "") [ s.tlsName ] ++ s.tlsAliases);
  tls = "give one of them another name, or tell them apart by path behind one service";
  tlsName =
    n: s:
    when (s.tlsName != "") (
      when (s.visibility != "public") (
        excluded "write visibility = \"public\";, or take the name out" "services.${n}.tlsName"
          "visibility = ${show s.visibility}"
      )
      ++ when (s.scope == "node") (both "services.${n}.tlsName" "scope = \"node\"")
      ++ when (s.protocol == "udp") (
        excluded "take the name out: strangers who send datagrams name nobody" "services.${n}.tlsName"
          "protocol = \"udp\""
      )
      ++ when (!isInvalid s.tlsName && (head public.${s.tlsName}).s.name != n) (
        taken "FL027" "services.${n}.tlsName" tls (_: (head public.${s.tlsName}).s.name) [ s.tlsName ]
      )
    );
  tlsAliases =
    n: s:
    let
      names = filter (a: !isInvalid a) s.tlsAliases;
      place = "services.${n}.tlsAliases";
    in
    when (s.tlsAliases != [ ]) (
      when (s.tlsName == "") (
        missing "services.${n}" "tlsName" "write the name that strangers are to know first, tlsName = \"…\";"
      )
      ++ taken "FL027" place tls (before public n) (sorted names)
      ++ map (
        name:
        fault {
          id = "FL119";
          inherit place;
          problem = "nobody has all names below a top-level domain: found";
          value = show name;
          remedy = "write the domain that is yours, such as \"*.example.${below name}\"";
        }
      ) (filter (name: isWild name && match "[^.]*" (below name) != null) names)
    );

  # An alias leads to one service, and may not hide the name of a service on a host.
  inside = having (s: s.aliases);
  aliases =
    n: s:
    let
      names = sorted (filter (a: !isInvalid a) s.aliases);
      place = "services.${n}.aliases";
    in
    when (s.aliases != [ ]) (
      when (s.visibility == "host") (
        excluded "take them out: nobody reaches it" place "visibility = \"host\""
      )
      ++ when (s.scope == "node") (
        excluded "write scope = \"both\";, so that there is one for them to lead to, or take them out" place
          "scope = \"node\""
      )
      ++ taken "FL111" place "choose another name, or take it out"
        (name: if t.services ? ${name} then name else before inside n name)
        names
      ++ map (
        name:
        fault {
          id = "FL112";
          inherit place;
          problem = "services of host ${below name} are called by names that it would have:";
          value = show name;
          remedy = "choose another label, such as \"*.${n}\"";
        }
      ) (filter (name: isWild name && t.hosts ? ${below name}) names)
    );
in
n: s:
tlsName n s ++ tlsAliases n s ++ aliases n s

# Warnings about hosts with a cordon or a drain.
{
  clean,
  t,
  lib,
  ...
}:
let
  inherit (builtins)
    attrNames
    concatStringsSep
    elem
    filter
    toJSON
    ;
  inherit (lib) fault faultIf when;

  chosen = s: clean.services ? ${s} && clean.services.${s}.replicas != null;
  pinned = h: filter (s: clean.services ? ${s} && !chosen s) h.services;

  stays =
    n: value: at:
    fault {
      id = "FL070";
      place = "hosts.${n}.drain";
      problem = "services and providers that name this host do not move:";
      inherit value;
      remedy = "name another host in ${at}, or acknowledge this";
    };

  # Services that would be placed on the host without the cordon.
  leaving =
    n:
    filter (
      s: elem n (t.placement.open.hosts clean.services.${s}) && !elem n t.services.${s}.hosts
    ) placed;
  placed = filter chosen (attrNames clean.services);

  moves =
    n:
    let
      all = leaving n;
      names = concatStringsSep " " (map toJSON all);
    in
    map (
      s:
      fault {
        id = "FL071";
        place = "hosts.${n}.cordon";
        problem = "it moves services that are or would be placed here, and that keeps does not name:";
        value = "service ${s}";
        remedy = "write hosts.${n}.keeps = [ ${names} ]; without what is new, or drain = true; where all are to move";
      }
    ) all;
in
{
  host =
    n: written:
    when written.drain (
      map (s: stays n "service ${s}" "services.${s}") (pinned t.hosts.${n})
      ++ map (k: stays n "provider ${k}" "providers.${k}.hosts") t.hosts.${n}.kinds
    )
    ++ when (written.cordon && !written.drain && written.keeps == [ ]) (moves n);

  # keeps :: String -> Host -> [Fault]
  keeps =
    n: written:
    faultIf (written.keeps != [ ] && !written.cordon && !written.drain) {
      id = "FL148";
      place = "hosts.${n}.keeps";
      problem = "keeps has an effect only with cordon or drain:";
      value = concatStringsSep ", " written.keeps;
      remedy = "write cordon = true;, or take it out; of a service that is to be here write placement.pins = [ ${toJSON n} ];";
    };
}

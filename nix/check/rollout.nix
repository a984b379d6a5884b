# Faults of the rollout, by which published versions reach hosts.
{
  clean,
  lib,
  t,
  ...
}:
let
  inherit (builtins)
    all
    attrNames
    attrValues
    concatMap
    concatStringsSep
    elem
    elemAt
    filter
    genList
    head
    length
    ;
  inherit (import ../lib) distinct invalid isInvalid;
  inherit (lib)
    attribute
    excluded
    fault
    faultIf
    missing
    show
    unknown
    when
    ;
  inherit (clean.rollout)
    atOnce
    maintenance
    waves
    within
    ;
  hosts = distinct clean.providers.config.hosts;
  last = length waves - 1;
  rest = "write { rest = true; } as the last wave, and nowhere else";

  # A wrong value has been reported.
  wrong = w: isInvalid w.percent || isInvalid w.rest || elem "" w.tags;

  # A wave has exactly one of the ways to choose hosts.
  wave =
    i:
    let
      w = elemAt waves i;
      place = "rollout.waves[${toString i}]";
      written =
        (if w.tags == [ ] then [ ] else [ "tags" ])
        ++ (if w.percent == null then [ ] else [ "percent" ])
        ++ (if w.rest then [ "rest" ] else [ ]);
      before = filter (p: p != null && !isInvalid p) (genList (n: (elemAt waves n).percent) i);
      nobody =
        problem: value: remedy:
        fault {
          id = "FL069";
          inherit
            place
            problem
            remedy
            value
            ;
        };
    in
    when (written == [ ]) (missing place "tags, percent or rest" "write one of them")
    ++ when (length written > 1) (
      excluded "write one of them, and a wave for each other" "${place}.${elemAt written 1}" (head written)
    )
    ++ when (w.rest != (i == last)) [
      (nobody "hosts would be in no wave, or waves reach nobody: found" (
        if w.rest then "rest before others" else "no rest at the end"
      ) rest)
    ]
    ++
      when
        (
          w.tags != [ ]
          && all (h: !all (tag: elem tag h.tags) w.tags) (attrValues t.hosts)
        )
        [
          (nobody "no host has the tags" (concatStringsSep ", " w.tags)
            "give one of them the tags, or take the wave out"
          )
        ]
    ++ when (w.percent != null && !all (p: p < w.percent) before) [
      (nobody "waves before have reached as much:" (show w.percent)
        "write a higher percentage, which includes the hosts of the lower one"
      )
    ];

  # The hosts of a budget, and the budgets that can never hold a host back.
  budget =
    i:
    let
      b = elemAt atOnce i;
      place = "rollout.atOnce[${toString i}]";
      hosts = filter (h: all (tag: elem tag h.tags) b.tags) (attrValues t.hosts);
    in
    if b.tags == [ ] then
      missing place "tags" "write the tags of the hosts that it limits"
    else if elem "" b.tags || elem invalid.string b.tags then
      [ ]
    else if hosts == [ ] then
      [
        (fault {
          id = "FL160";
          inherit place;
          problem = "no host has the tags";
          value = concatStringsSep ", " b.tags;
          remedy = "give the hosts the tags, or take the budget out";
        })
      ]
    else
      faultIf (!isInvalid b.most && b.most >= length hosts) {
        id = "FL161";
        place = "${place}.most";
        problem = "the budget holds no host back, because ${toString (length hosts)} hosts have the tags ${concatStringsSep ", " b.tags}: found";
        value = toString b.most;
        remedy = "write less, or take the budget out";
      };
in
concatMap budget (genList (i: i) (length atOnce))
++ when (waves != [ ] || atOnce != [ ]) (
  concatMap wave (filter (i: !wrong (elemAt waves i)) (genList (i: i) (length waves)))
  ++ faultIf (hosts == [ ] || (length hosts > 1 && clean.providers.store.kind != "etcd")) {
    id = "FL068";
    place = "rollout";
    problem = "one provider of documents decides how far a version has come, found";
    value = if hosts == [ ] then "none" else concatStringsSep ", " hosts;
    remedy =
      if hosts == [ ] then
        "write providers.config.hosts = [ \"…\" ];"
      else
        "hosts of providers.config share no store: write providers.config.hosts = [ ${show (head hosts)} ]; or have them share one: providers.store = { kind = \"etcd\"; hosts = [ … ]; };";
  }
  ++ faultIf (!isInvalid within && within <= clean.providers.config.interval) {
    id = "FL009";
    place = "rollout.within";
    problem = "hosts look for documents every ${toString clean.providers.config.interval} seconds, and would be late: found";
    value = toString within;
    remedy = "write more than providers.config.interval, 3600 for an hour";
  }
)
++ concatMap (
  g:
  let
    place = "rollout.maintenance.${attribute g}";
  in
  unknown "FL016" "group of hosts" clean.hostGroups place [ g ]
  ++ faultIf (maintenance.${g}.days == [ ]) {
    id = "FL069";
    place = "${place}.days";
    problem = "its hosts would be offered nothing: found";
    value = "no day";
    remedy = "write one, or take the days out for all of them";
  }
) (attrNames maintenance)

# Generated secrets: the provider makes each once, for all its readers.
let
  inherit (builtins)
    all
    any
    attrNames
    attrValues
    concatLists
    concatMap
    concatStringsSep
    elem
    elemAt
    filter
    genList
    groupBy
    head
    length
    mapAttrs
    stringLength
    ;
  inherit (import ../language/types) named;
  inherit (import ../lib) isInvalid optionalAttrs toSet;
  secret = import ../language/secret.nix;

  # The number of characters of secrets that are text. Other secrets are key pairs.
  texts = {
    hex = 64;
    password = 32;
  };

  # The name of a secret at its provider. Names of secrets have no dots.
  nameOn = host: s: if s.perHost then "${s.name}.${host.name}" else s.name;

  # Reports whether a reader accepts two values.
  held = s: any (r: r.overlap) s.readers;

  # The ways to write a reader, and those that one uses.
  ways = [
    "service"
    "host"
    "group"
    "tags"
  ];
  written =
    r:
    filter (
      w:
      !elem r.${w} [
        ""
        [ ]
      ]
    ) ways;

  # The hosts of a reader. A wrong reader has none.
  hostsOf =
    t: r:
    let
      where = is: map (h: h.name) (filter is (attrValues t.hosts));
    in
    if r.service != "" then
      t.services.${r.service}.hosts or [ ]
    else if r.host != "" then
      (if t.hosts ? ${r.host} then [ r.host ] else [ ])
    else if r.group != "" then
      where (h: elem r.group (t.outward h.group))
    else if r.tags != [ ] then
      where (h: all (tag: elem tag h.tags) r.tags)
    else
      [ ];

  # The readers of secrets by host, one entry for each host of a reader.
  onHosts =
    t:
    groupBy (r: r.host.name) (
      concatMap (
        s:
        concatLists (
          genList (
            i:
            let
              r = elemAt s.readers i;
              at = host: {
                host = t.hosts.${host};
                reader = r;
                secret = s;
                place = "secrets.${s.name}.readers[${toString i}]";
              };
            in
            map at (hostsOf t r)
          ) (length s.readers)
        )
      ) (attrValues t.secrets)
    );
in
{
  doc = "Makes passwords and keys, one for all readers of a secret.";
  port = 6;
  alone = "each would make a secret of its own, so that readers have different ones";
  operated = true;
  settings = { };

  entries.secrets = {
    doc = "Passwords and keys that `providers.secret` makes, with the services and hosts that read them.";
    type = named {
      what = "secret";
      max = 51; # "secret-node-<name>" is a DNS label
    } secret;
    on = t: mapAttrs (_: map (r: r.secret.name)) (onHosts t);
    shown = s: {
      inherit (s) generate generation perHost;
      readers = map (
        r:
        if r.service != "" then
          "service/${r.service}"
        else if r.host != "" then
          "node/${r.host}"
        else if r.group != "" then
          "group/${r.group}"
        else
          "tags/${concatStringsSep "," r.tags}"
      ) s.readers;
      public = s.public != null;
    };
  };

  reasons = clean: map (n: "secrets.${n} needs it") (attrNames clean.secrets);

  needs =
    t:
    let
      on = onHosts t;
      # A value with several readers must not change by itself: readers that fetch at different
      # times would have different values.
      shared = mapAttrs (_: all: length all > 1) (
        groupBy (r: nameOn r.host r.secret) (concatLists (attrValues on))
      );
      need =
        {
          host,
          reader,
          secret,
          place,
        }:
        let
          inherit (secret) name generate;
          text = texts ? ${generate};
          service = t.services.${reader.service};
          overlap = if held secret then secret.overlap else 0;
          file = value: { inherit (reader) mode; } // { inherit value; };
        in
        {
          id = "secret-${if reader.service != "" then reader.service else "node"}-${name}";
          for = if reader.service != "" then service.idOn host.name else host.id;
          request = {
            inherit generate overlap;
            secret = nameOn host secret;
            length =
              if !text then
                0
              else if secret.length == null then
                texts.${generate}
              else
                secret.length;
            rotate = secret.rotate * 86400;
            two = reader.overlap;
          };
          files = {
            ${name} = file "secret";
          }
          // optionalAttrs reader.overlap { "${name}.other" = file "other"; }
          // optionalAttrs (!text) {
            "${name}.pub" = {
              value = "public";
              mode = "0444";
            };
          };
          owner = if reader.service != "" then service.user else "";
          renew = optionalAttrs (shared.${nameOn host secret} || secret.rotate > 0 || overlap > 0) {
            interval = if overlap > 0 then overlap / 4 else 300;
          };
          inherit (reader) restart dependsOn;
          inherit (secret) generation;
          inherit place;
          what = "secret ${name}";
          again = "take one of its readers out or narrow it, because two of them select the host";
        };
    in
    host: map need (on.${host.name} or [ ]);

  label = need: "secret-${head (attrNames need.deliver.files)}";

  check =
    {
      clean,
      shapes,
      t,
      lib,
      ...
    }:
    let
      inherit (lib)
        excluded
        fault
        missing
        unknown
        when
        ;
      inherit (clean.providers) config;
      groups = toSet (concatMap t.outward (attrNames clean.hostGroups));
      answering = filter (h: elem h config.hosts) clean.providers.secret.hosts;
    in
    {
      entries.secrets =
        n: s:
        let
          place = "secrets.${n}";
          pair = !texts ? ${s.generate};
          reads =
            i:
            let
              r = elemAt s.readers i;
              at = "${place}.readers[${toString i}]";
            in
            when (!isInvalid r.service && !isInvalid r.host && shapes.secrets.${n} == [ ]) (
              when (r.service != "") (lib.service "${at}.service" [ r.service ])
              ++ when (r.host != "") (lib.host "${at}.host" [ r.host ])
              ++ when (r.group != "") (
                unknown "FL016" "group of hosts" groups "${at}.group" [ r.group ]
              )
              ++ when (length (written r) > 1) (
                excluded "make two readers of them" "${at}.${elemAt (written r) 1}"
                  "${head (written r)} = ${lib.show r.${head (written r)}}"
              )
              ++ when (written r == [ ]) (
                missing at "service" "write service = \"…\"; host = \"…\"; group = \"…\"; or tags = [ \"…\" ];"
              )
              ++ when (r.tags != [ ] && length (written r) == 1 && hostsOf t r == [ ]) [
                (fault {
                  id = "FL174";
                  place = "${at}.tags";
                  problem = "no host has all of these tags:";
                  value = concatStringsSep ", " r.tags;
                  remedy = "correct them, or write them into hosts.<name>.tags";
                })
              ]
              ++ when (stringLength r.service + stringLength n > 55) [
                (fault {
                  id = "FL025";
                  place = at;
                  problem = "names of service and secret together have at most 55 characters, these";
                  value = toString (stringLength r.service + stringLength n);
                  remedy = "shorten one of them";
                })
              ]
            );
        in
        # A secret with wrong values has been reported.
        when (shapes.secrets.${n} == [ ]) (
          when (s.readers == [ ]) (missing place "readers" "write readers = [ { service = \"…\"; } ];")
          ++ when (s.perHost && s.public != null) (
            excluded "take one of them out: with perHost, each host has a key pair of its own, and the file has the public half of one" "${place}.public"
              "perHost = true"
          )
          ++ when (pair && s.length != null) (
            excluded "take it out: such keys have one length" "${place}.length" "generate = ${lib.show s.generate}"
          )
          ++ when (!pair && s.public != null) (
            excluded "take it out, or generate a key pair: age, ssh or wireguard" "${place}.public"
              "generate = ${lib.show s.generate}"
          )
          ++ when (s.public != null && s.rotate > 0) [
            (fault {
              id = "FL093";
              place = "${place}.rotate";
              problem = "the key would be replaced by itself, and the flake would have a former public half until somebody records the next one: found";
              value = toString s.rotate;
              remedy = "take rotate out and raise ${place}.generation, then run florctl secret record";
            })
          ]
          ++ when (s.public != null && clean.providers.secret.hosts != [ ] && answering == [ ]) [
            (fault {
              id = "FL094";
              place = "${place}.public";
              problem = "operators read public halves at hosts of providers.config, and none of those provides secrets: found";
              value = concatStringsSep ", " clean.providers.secret.hosts;
              remedy = "name one of them in providers.config.hosts, or take public out";
            })
          ]
        )
        ++ concatLists (genList reads (length s.readers));
      warnings.entries.secrets = import ../check/secrets.nix { inherit lib shapes; };
    };
}

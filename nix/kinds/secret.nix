# Generated secrets: the provider makes each once, for all its readers.
let
  inherit (builtins)
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
  inherit (import ../lib) isInvalid optionalAttrs;
  secret = import ../language/secret.nix;

  # The number of characters of secrets that are text. Other secrets are key pairs.
  texts = {
    hex = 64;
    password = 32;
  };

  # Reports whether a reader accepts two values.
  held = s: any (r: r.overlap) s.readers;

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
              service = t.services.${r.service};
              at = host: {
                inherit host;
                reader = r;
                secret = s;
                place = "secrets.${s.name}.readers[${toString i}]";
              };
            in
            if r.service != "" then
              if t.services ? ${r.service} then map (h: at t.hosts.${h}) service.hosts else [ ]
            else if t.hosts ? ${r.host} then
              [ (at t.hosts.${r.host}) ]
            else
              [ ]
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
      inherit (s) generate generation;
      readers = map (r: if r.service != "" then "service/${r.service}" else "node/${r.host}") s.readers;
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
        groupBy (r: r.secret.name) (concatLists (attrValues on))
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
            secret = name;
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
          renew = optionalAttrs (shared.${name} || secret.rotate > 0 || overlap > 0) {
            interval = if overlap > 0 then overlap / 4 else 300;
          };
          inherit (reader) restart dependsOn;
          inherit (secret) generation;
          inherit place;
          what = "secret ${name}";
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
      inherit (lib) excluded fault missing when;
      inherit (clean.providers) config;
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
            when (!isInvalid r.service && !isInvalid r.host) (
              when (r.service != "") (lib.service "${at}.service" [ r.service ])
              ++ when (r.host != "") (lib.host "${at}.host" [ r.host ])
              ++ when (r.service != "" && r.host != "") (
                excluded "make two readers of them" "${at}.host" "service = ${lib.show r.service}"
              )
              ++ when (r.service == "" && r.host == "") (
                missing at "service" "write service = \"…\"; or host = \"…\";"
              )
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

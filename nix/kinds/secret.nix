# Generated secrets: the provider makes each once, for all its readers.
let
  inherit (builtins)
    any
    attrNames
    attrValues
    concatLists
    concatStringsSep
    groupBy
    head
    length
    mapAttrs
    ;
  inherit (import ../language/types) named;
  inherit (import ../lib) optionalAttrs;
  secret = import ../language/secret.nix;
  inherit (import ../resolve/secrets.nix) onHosts texts;

  # The name of a secret at its provider. Names of secrets have no dots.
  nameOn = host: s: if s.perHost then "${s.name}.${host.name}" else s.name;

  # Reports whether a reader accepts two values.
  held = s: any (r: r.overlap) s.readers;
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

  check = import ../check/secrets.nix;
}

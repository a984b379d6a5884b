# Needs of this host's services: paths of the delivered files for other modules, and when the units
# that use them start.
{
  config,
  florete,
  lib,
  ...
}:
let
  inherit (lib)
    attrNames
    concatMap
    concatMapStringsSep
    concatStringsSep
    elem
    filter
    foldl'
    hasSuffix
    listToAttrs
    mapAttrs
    mkDefault
    mkForce
    mkIf
    mkMerge
    mkOption
    recursiveUpdate
    removeSuffix
    types
    ;
  inherit (florete) cfg state unit;
  kinds = import ../nix/kinds;
  own = import ../nix/kinds/own.nix;
  names = import ../nix/lib/names.nix;
  on = cfg.host.enable && florete.known;

  # { <service>.<kind> = need; }. The label of a file is file-<name>, and of a need of the cluster's
  # own kinds <kind>-<need>.
  kind = need: ((kinds.${need.kind} or own).label or (n: n.kind)) need;
  service = need: names.service need.for;
  ofServices = filter (n: n.deliver.files != { } && service n != null) florete.manifest.needs;
  needs =
    if on then
      foldl' (all: n: recursiveUpdate all { ${service n}.${kind n} = n; }) { } ofServices
    else
      { };

  # The settings of all needs that exist.
  configured = concatMap (
    s: map (kind: cfg.needs.${s}.${kind} // { need = needs.${s}.${kind}; }) (attrNames (needs.${s}))
  ) (attrNames needs);
  missing = concatMap (
    s:
    map (kind: "${s}.${kind}") (
      filter (kind: !(needs.${s} or { }) ? ${kind}) (attrNames cfg.needs.${s})
    )
  ) (attrNames cfg.needs);

  adopted = filter (n: n.adopt != null) configured;
  gated = filter (n: n.start == "fulfilled") configured;
  loaded = filter (n: n.start == "credential") configured;
  placeheld = filter (n: n.start == "placeholders") configured;

  # Units that may load credentials of a service: the unit of its name, and those that its needs
  # notify.
  entitled =
    n:
    lib.unique (
      filter (hasSuffix ".service") (
        [ "${service n.need}.service" ]
        ++ concatMap (o: o.onChange) (filter (o: service o == service n.need) ofServices)
      )
    );

  services = n: map (removeSuffix ".service") (filter (hasSuffix ".service") n.units);

  # The first generation of the files, which the first delivery replaces.
  held =
    n:
    let
      inherit (n.need) id deliver;
      dir = "${state}/needs/${id}";
      or' = default: v: if v == "" then default else v;
      text = name: n.placeholders.${name} or "placeholder";
    in
    {
      ${dir}.d.mode = "0755";
      "${dir}/gen-1".d.mode = "0755";
      "${dir}/current".L.argument = "gen-1";
    }
    // listToAttrs (
      map (name: {
        name = "${dir}/gen-1/${name}";
        value.f = {
          inherit (deliver.files.${name}) mode;
          user = or' "root" deliver.owner;
          group = if config.users.groups ? ${deliver.owner} then deliver.owner else "root";
          argument = text name;
        };
      }) (attrNames deliver.files)
    );
in
{
  options.services.${florete.prefix}.needs = mkOption {
    type = types.attrsOf (types.attrsOf (types.submodule ./need.nix));
    default = { };
    example = lib.literalExpression ''{ wiki.oidc.start = "placeholders"; }'';
    description = ''
      The needs of the services on this host, by service and kind of need, such as `wiki.oidc`, or
      `wiki.file-smtp-password` for one of its files.
    '';
  };

  config = mkIf on {
    assertions =
      map (n: {
        assertion = false;
        message =
          "${florete.option}.needs.${n}: host ${cfg.hostName} has no such need, it has "
          + concatMapStringsSep ", " (n: "${service n}.${kind n}") ofServices;
      }) missing
      ++ concatMap (
        n:
        map (unit: {
          assertion = false;
          message =
            "${florete.option}.needs: ${unit} would be refused the credentials of ${n.need.id}, which are given to "
            + "${concatStringsSep ", " (entitled n)}: name one of these in its `units`, tell ${unit} of changes in the topology, or choose another `start`";
        }) (filter (unit: !elem unit (entitled n)) n.units)
      ) loaded
      ++ map (n: florete.refused "${florete.option}.needs: what ${n.need.id} is to adopt" n.adopt) (
        filter (n: florete.inStore n.adopt) adopted
      );

    services.${florete.prefix} = {
      needs = mapAttrs (
        _:
        mapAttrs (
          _: n: {
            files = mapAttrs (name: _: "${florete.current n.id}/${name}") n.deliver.files;
            target = unit "need-${n.id}.target";
            units = mkDefault n.onChange;
          }
        )
      ) needs;

      host.settings = mkIf (adopted != [ ]) {
        adopt = mkDefault (concatMapStringsSep "," (n: "${n.need.id}=${n.adopt}") adopted);
      };

      units = mkMerge [
        (mkIf (adopted != [ ]) {
          ${unit "activate.service"}.Service.BindReadOnlyPaths = mkDefault (map (n: "-${n.adopt}") adopted);
        })
        # Placeholders are generation 1, so delivered files are a later generation.
        (listToAttrs (
          map (n: {
            name = unit "need-${n.need.id}.path";
            value.Path = mkForce {
              PathExistsGlob = map (g: "${state}/needs/${n.need.id}/gen-${g}") [
                "[2-9]*"
                "1[0-9]*"
              ];
              Unit = n.target;
            };
          }) placeheld
        ))
      ];
    };

    systemd.services = mkMerge (
      concatMap (
        n:
        map (name: {
          ${name} = {
            after = [ n.target ];
            unitConfig.ConditionPathExists = [ (florete.current n.need.id) ];
          };
        }) (services n)
      ) gated
      ++ concatMap (
        n:
        map (name: {
          ${name} = {
            # The documents in force decide which credentials the unit may load.
            after = [ (unit "activate.service") ];
            serviceConfig.LoadCredential = map (
              file:
              "${if kinds ? ${n.need.kind} then n.need.kind else kind n.need}_${file}:${florete.run}/credentials.sock"
            ) (attrNames n.need.deliver.files);
          };
        }) (services n)
      ) loaded
    );

    systemd.tmpfiles.settings = listToAttrs (
      map (n: {
        name = unit n.need.id;
        value = held n;
      }) placeheld
    );
  };
}

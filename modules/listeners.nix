# Refuses that two clusters on one host listen on the same address.
{
  florete,
  config,
  lib,
  ...
}:
let
  inherit (lib)
    any
    attrNames
    concatMap
    concatStringsSep
    elem
    filter
    groupBy
    hasPrefix
    intersectAttrs
    listToAttrs
    map
    mapAttrsToList
    nameValuePair
    optional
    optionals
    removePrefix
    ;

  # The listeners of one instance: address with protocol → attribute that declares it.
  listeners =
    {
      cfg,
      known,
      manifest,
      option,
      policy,
      ...
    }:
    let
      inherit (manifest) forwarder;
      of = attribute: address: nameValuePair address "hosts.${cfg.hostName}.${attribute}";
    in
    listToAttrs (
      optionals (known && cfg.forwarder.enable or false) (
        map (l: of "loopback" "${l.listen}/${l.protocol or "tcp"}") (forwarder.reach ++ forwarder.socks)
        ++ concatMap (l: [
          (of "forwarderPort" "${l}/udp")
          (of "forwarderPort" "${l}/tcp")
        ]) forwarder.listen
      )
      ++ optionals (policy != null && cfg.provider.enable or false) (
        map (l: of "providerPort" "${l}/tcp") (concatMap (p: p.listen) (lib.attrValues policy.provider))
        ++ concatMap (
          kind:
          optional (cfg.provider.settings ? ${kind}.listen) (
            nameValuePair "${cfg.provider.settings.${kind}.listen}/tcp" "${option}.provider.settings.${kind}.listen"
          )
        ) [ "jwt" "oidc" ]
        ++ optionals (policy ? store.member) (
          map (l: nameValuePair "${removePrefix "https://" l}/tcp" "providers.store.port") (
            policy.store.member.clients.listen ++ policy.store.member.peers.listen
          )
        )
      )
    );

  # A program that listens on all addresses of the host uses its port on each of them.
  port = address: lib.last (lib.splitString ":" address);
  isAny =
    address:
    any (all: address == "${all}:${port address}") [
      ""
      "0.0.0.0"
      "[::]"
    ];
  covered =
    by: all:
    let
      ports = map port (filter isAny (attrNames by));
    in
    listToAttrs (
      map (a: nameValuePair a all.${a}) (
        filter (a: elem (port a) ports) (if ports == [ ] then [ ] else attrNames all)
      )
    );

  # Only the later of two instances compares itself with the other.
  others =
    map
      (
        prefix:
        import ./lib.nix {
          inherit config lib;
          instance = removePrefix "_" (removePrefix "florete" prefix);
        }
      )
      (
        filter (n: (n == "florete" || hasPrefix "florete_" n) && n < florete.prefix) (
          attrNames config.services
        )
      );
in
{
  assertions = concatMap (
    other:
    let
      theirs = listeners other;
      ours = listeners florete;
      both = covered theirs ours // covered ours theirs // intersectAttrs theirs ours;
    in
    mapAttrsToList (attribute: addresses: {
      assertion = false;
      message = "${other.option} and ${florete.option} both listen on ${concatStringsSep ", " addresses}: write another ${attribute} in one of them";
    }) (groupBy (address: both.${address}) (attrNames both))
  ) others;
}

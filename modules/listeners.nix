# A member of several clusters listens on an address for one of them alone.
{ florete, config, lib, ... }:
let
  inherit (lib) attrNames concatStringsSep filter groupBy hasPrefix intersectAttrs listToAttrs mapAttrsToList nameValuePair optional optionals removePrefix;

  # Address → the attribute that says so, of one membership.
  listeners = { cfg, known, manifest, option, policy, ... }:
    let
      inherit (manifest) forwarder;
      says = attribute: address: nameValuePair address "hosts.${cfg.hostName}.${attribute}";
    in
    listToAttrs (
      optionals (known && cfg.forwarder.enable or false)
        (map (l: says "loopback" l.listen) (forwarder.reach ++ forwarder.socks)
          ++ optional (forwarder ? listen) (says "forwarderPort" "${forwarder.listen}/udp"))
      ++ optionals (policy != null && cfg.provider.enable or false)
        ([ (says "providerPort" policy.provider.address) ]
          ++ optional (cfg.provider.settings ? oidc.listen)
            (nameValuePair cfg.provider.settings.oidc.listen "${option}.provider.settings.oidc.listen"))
    );

  # Memberships before this one, so that of each two one looks.
  others = map (prefix: import ./lib.nix { inherit config lib; membership = removePrefix "_" (removePrefix "florete" prefix); })
    (filter (n: (n == "florete" || hasPrefix "florete_" n) && n < florete.prefix) (attrNames config.services));
in
{
  assertions = lib.concatMap
    (other:
      let both = intersectAttrs (listeners other) (listeners florete); in
      mapAttrsToList
        (attribute: addresses: {
          assertion = false;
          message = "${other.option} and ${florete.option} both listen on ${concatStringsSep ", " addresses}: write another ${attribute} in one of them";
        })
        (groupBy (address: both.${address}) (attrNames both)))
    others;
}

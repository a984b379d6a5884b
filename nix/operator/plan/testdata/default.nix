# Every case in one evaluation. A case is { before; after; }, two changes to the valid topology of
# tests/golden/compiler, or to an extended one.
let
  inherit (builtins)
    attrNames
    filter
    isAttrs
    listToAttrs
    mapAttrs
    match
    readDir
    ;
  inherit (import ../../..) mkCluster;
  inherit (import ../../../lib/names.nix) sri;

  merge =
    a: b:
    if isAttrs a && isAttrs b then
      a // mapAttrs (n: v: if a ? ${n} then merge a.${n} v else v) b
    else
      b;
  key = name: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA" + builtins.substring 8 42 (sri name);
  base = merge (import ../../../../tests/golden/compiler/base.nix { inherit key; }) {
    services.auth = {
      host = "alpha";
      port = 5556;
    };
    services.wiki = {
      user = "wiki";
      sso = {
        mode = "oidc";
        restart = "wiki.service";
        redirectURIs = [ "https://wiki.example.org/callback" ];
      };
    };
    users.ben.roles = [ "reader" ];
    providers.oidc = {
      hosts = [ "alpha" ];
      issuer = "https://auth.example.org";
    };
    serviceGroups.control-plane = [ "auth" ];
  };

  snapshot =
    topology:
    let
      c = mkCluster topology;
    in
    {
      inherit (c) topology documents;
      warnings = c.faults;
    };
  cases = filter (f: f != "default.nix" && match ".*\\.nix" f != null) (attrNames (readDir ./.));
in
listToAttrs (
  map (name: {
    inherit name;
    value = mapAttrs (_: snapshot) (
      { before = base; } // import (./. + "/${name}") { inherit base key merge; }
    );
  }) cases
)

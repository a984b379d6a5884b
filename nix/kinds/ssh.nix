# SSH user certificates, and the keys with which hosts verify them.
let
  inherit (builtins)
    any
    attrNames
    filter
    head
    isString
    ;
  inherit (import ../language/types) between default;
  inherit (import ../lib) when;
in
{
  doc = "Issues SSH certificates for users. Needed where roles have `logins`.";
  port = 12;
  alone = "each would sign with keys of its own";
  settings = {
    lifetime =
      default "Lifetime of certificates, in seconds. A host renews when a third of it is left." 3600
        (between 300 86400 "seconds");
    generation =
      default
        "Raise it when a signing key may be known to others. All certificates end, and hosts get new ones."
        1
        (between 1 1000000 "a generation");
  };
  policy = t: { inherit (t.providers.ssh) generation lifetime; };

  reasons =
    clean:
    map (r: "roles.${r}.logins needs it") (
      filter (r: clean.roles.${r}.logins != { }) (attrNames clean.roles)
    );

  needs =
    t: host:
    let
      inherit (t.access) logins;
      inherit (t.providers.ssh) generation;
      # The accounts of a user on the host. A user who acts there by uid or unit has none.
      accounts = u: filter isString (host.callers."user/${u}" or [ u ]);
      certificate = u: {
        id = "ssh-user-${u}";
        for = t.users.${u}.id;
        request = {
          inherit (t.users.${u}) id;
        };
        files = {
          "id_ed25519" = {
            value = "key";
            mode = "0400";
          };
          "id_ed25519-cert.pub" = {
            value = "certificate";
            mode = "0444";
          };
        };
        owner = head (accounts u);
        renew.atPercent = 66;
        inherit generation;
      };
    in
    map certificate (filter (u: logins.users ? ${t.users.${u}.id} && accounts u != [ ]) host.users)
    ++ when (logins.at != { } && any (s: logins.allows s host.name) host.running) [
      {
        id = "ssh-keys";
        for = host.id;
        request = { };
        files."ca.pub" = {
          value = "ca";
          mode = "0444";
        };
        renew.atPercent = 50;
        inherit generation;
      }
    ];
}

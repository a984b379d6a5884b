# A service with a database, a secret, a client and a token of a forge is renamed, and the config
# provider moves.
{ base, merge, ... }:
let
  wiki = name: {
    services.${name} = {
      host = "beta";
      port = 8080;
      user = "wiki";
      roles = [ "reader" ];
      databases.main.on = "postgres";
      databases.kept = {
        on = "postgres";
        called = "wiki_kept";
      };
      git.pages = {
        on = "forge";
        repositories = [ "site" ];
      };
      sso = {
        mode = "oidc";
        redirectURIs = [ "https://wiki.example.org/callback" ];
      };
    };
    secrets."${name}-session" = {
      generate = "password";
      readers = [ { service = name; } ];
    };
    roles.reader.services = [
      "forge"
      "postgres"
      name
    ];
  };
  others =
    merge
      (
        base
        // {
          services = removeAttrs base.services [ "wiki" ];
        }
      )
      {
        services.postgres = {
          host = "alpha";
          port = 5432;
        };
        services.forge = {
          host = "alpha";
          port = 3000;
        };
        providers = {
          config.hosts = [ "alpha" ];
          secret.hosts = [ "alpha" ];
          database = {
            hosts = [ "alpha" ];
            servers.postgres.service = "postgres";
          };
          git = {
            hosts = [ "alpha" ];
            forges.forge = {
              kind = "soft-serve";
              service = "forge";
            };
          };
        };
      };
in
{
  before = merge others (wiki "wiki");
  after = merge (merge others (wiki "docs")) { hosts.alpha.address = "192.0.2.9"; };
}

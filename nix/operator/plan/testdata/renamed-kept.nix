# A service is renamed, and keeps its database, secret, client, account and mailbox by their former
# names.
{ base, merge, ... }:
let
  wiki = name: called: {
    services.${name} = merge called {
      host = "beta";
      port = 8080;
      user = "wiki";
      roles = [ "reader" ];
      databases.main.on = "postgres";
      needs.mail.kind = "mailbox";
      git.pages = {
        on = "forge";
        repositories = [ "site" ];
      };
      sso = {
        mode = "oidc";
        redirectURIs = [ "https://wiki.example.org/callback" ];
      };
    };
    secrets.session = {
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
          mailbox = {
            hosts = [ "alpha" ];
            port = 4650;
            run = "/usr/local/lib/florete/mailbox";
            answer.password = { };
          };
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
  before = merge others (wiki "wiki" { });
  after = merge others (
    wiki "docs" {
      databases.main.called = "wiki_main";
      git.pages.called = "florete-wiki-pages";
      needs.mail.called = "wiki";
      sso.called = "wiki";
    }
  );
}

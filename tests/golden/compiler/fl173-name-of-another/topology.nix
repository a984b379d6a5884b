# Clients and needs that providers would know by the same name.
{ base, merge, ... }:
merge base {
  services = {
    wiki = {
      sso = {
        mode = "oidc";
        redirectURIs = [ "https://wiki.example.org/callback" ];
      };
      needs.mail.kind = "mailbox";
    };
    docs = {
      host = "alpha";
      port = 8081;
      sso = {
        mode = "oidc";
        called = "wiki";
        redirectURIs = [ "https://docs.example.org/callback" ];
      };
      needs.mail = {
        kind = "mailbox";
        called = "wiki";
      };
    };
  };
  roles.reader.services = [ "docs" ];
  providers = {
    mailbox = {
      hosts = [ "alpha" ];
      port = 4650;
      run = "/usr/local/lib/florete/mailbox";
      answer.password = { };
    };
    oidc = {
      hosts = [ "alpha" ];
      issuer = "https://auth.example.org";
    };
  };
}

# Kinds that do not exist or belong to Florete, and requests with wrong fields.
{ base, merge, ... }:
merge base {
  services.wiki.needs = {
    mail = {
      kind = "mailbx";
      request.address = "wiki@example.org";
    };
    login.kind = "oidc";
    a.kind = "mailbox";
    b = {
      kind = "mailbox";
      request.address = "wiki@example.com";
    };
    c = {
      kind = "mailbox";
      request = {
        address = "c@example.org";
        adress = "c@example.org";
        quota = "100";
      };
    };
  };
  providers.mailbox = {
    hosts = [ "alpha" ];
    port = 4650;
    run = "/usr/local/lib/florete/mailbox";
    request = {
      address.pattern = "*@example.org";
      quota = {
        type = "integer";
        default = 100;
      };
    };
    answer.password = { };
  };
}

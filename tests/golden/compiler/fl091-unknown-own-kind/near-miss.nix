# A known kind, and a request with its fields.
{ base, merge, ... }:
merge base {
  services.wiki.needs.mail = {
    kind = "mailbox";
    request = {
      address = "wiki@example.org";
      quota = 7;
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

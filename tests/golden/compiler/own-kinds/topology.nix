# Needs of kinds of the cluster's own, answered by an executable and by a service.
{ base, merge, ... }:
merge base {
  services.wiki = {
    user = "wiki";
    needs.mail = {
      kind = "mailbox";
      request.address = "wiki@example.org";
      restart = "wiki.service";
      rotate = 30;
    };
    needs.news = {
      kind = "mailbox";
      request = {
        address = "news@example.org";
        quota = 5;
      };
      generation = 2;
      dependsOn = [ "mailbox-wiki-mail" ];
    };
    needs.name = {
      kind = "dns";
      request = {
        names = [
          "wiki"
          "docs"
        ];
        public = true;
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
  providers.dns = {
    hosts = [ "beta" ];
    port = 4651;
    url = "unix:/run/dns/http.sock";
    request = {
      names.type = "strings";
      public.type = "boolean";
    };
    answer = {
      token = { };
      server.mode = "0444";
    };
  };
}

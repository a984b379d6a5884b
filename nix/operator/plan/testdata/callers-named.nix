{ base, merge, ... }: {
  before = merge base {
    services.wiki.protocol = "http";
    services.blog.identity = "proxy-v2";
    services.blog.host = "beta";
    services.blog.port = 8081;
    roles.reader.services = [
      "blog"
      "wiki"
    ];
  };
  after = merge base {
    services.wiki.protocol = "http";
    services.wiki.identity = "http";
    services.blog.host = "beta";
    services.blog.port = 8081;
    roles.reader.services = [
      "blog"
      "wiki"
    ];
  };
}

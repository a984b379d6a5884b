{ base, merge, ... }:
merge base {
  services.blog = {
    host = "bata";
    port = 1;
  };
  acknowledge = [
    {
      id = "FL041";
      place = "services.wiki";
      reason = "it was so once";
    }
    {
      id = "FL010";
      place = "services.blog.host";
      reason = "errors stay errors";
    }
    {
      id = "FL041";
      reason = "without a place it is a fault of its own, and that alone";
    }
  ];
}

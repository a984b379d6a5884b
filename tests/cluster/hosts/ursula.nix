{ on, me }: on 3 { callers."service/outline" = me; }

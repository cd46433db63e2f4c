"""News for people and programs: what is news, for whom, and its delivery.

signing         secrets that are derived, and the signature of a body
retry_schedule  when a failed delivery is tried again, and when it is given up (PURE)
addresses       which addresses a delivery may connect to (PURE but for the name lookup)
post            one HTTP request, to an address that was checked, within limits
mail            one e-mail
messages        an event in words and figures: JSON, Slack, plain text
decide          what is news: ends of runs, contradicted estimates, steps, silent devices
fan_out         one event -> a delivery for each subscription that wants it
deliver         deliveries that are due are taken, and their outcome stored
sender          the loop of `manage.py send_news`
subscriptions   create, change, rotate, test, delete: the only writer of subscriptions
forms, views, urls   the page "Notifications"
"""
